#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rlx/graph.h"
#include "rlx/place.h"

// The builders of rlx/ops.h by name, for callers that do not know them when they are compiled: other languages, tools, files.
// Collected from the op sources by scripts/op_declarations.py.

namespace rlx {

/// A function that a builder calls, as the step of scan: from groups of values (carry, x) to groups of values. One value is a group of one.
using GroupFunction = std::function<std::vector<Values>(const std::vector<Values>&)>;

/// What a caller hands over for a parameter; std::monostate: nothing, the parameter keeps its initial value.
using CallArgument = std::variant<std::monostate, bool, std::int64_t, double, std::string, DType, std::vector<std::int64_t>,
                                  std::vector<double>, Dim, Dims, Value, Values, GroupFunction, std::vector<GroupFunction>>;

/// What a parameter takes. An integer is a number and a size too, and one of something is a list of it. A number given for an operand
/// takes the element type of the first operand.
enum class ParameterKind : std::uint8_t {
  operand,
  operands,
  boolean,
  integer,
  number,
  text,
  word,  // one of BuilderParameter::words
  dtype,
  integers,
  numbers,
  size,
  sizes,
  function,
  functions,
};
/// "an array", "one of none, mean, sum" without the words: for messages and documents.
std::string_view name_of(ParameterKind kind);

struct BuilderParameter {
  std::string_view name;
  ParameterKind kind;
  bool required;
  std::string_view initial;  // as C++ has it, without the name of an enumeration: "-1", "mean", "{}"
  std::span<const std::string_view> words = {};
};

class CallArguments;

/// One function of rlx/ops.h. A parameter that is a structure of options counts as its members.
struct Builder {
  std::string_view name, declaration;
  std::string_view comment;  // what it computes, shapes, errors
  std::string_view ops;      // those that it makes by itself, with blanks between
  std::string_view group;    // the folder of src/ops
  std::span<const BuilderParameter> parameters;
  bool several;                          // it gives Values, not one Value
  Values (*call)(const CallArguments&);  // for `apply`; null where it does not give values
  bool makes(std::string_view op) const;
};

/// All, by source file. Overloads are entries of one name.
std::span<const Builder> builders();
/// The overloads of one name; none when it is unknown.
std::vector<const Builder*> builders_of(std::string_view name);

/// An op of src/ops or a builder, and the group of its source file: the folder of src/ops.
struct GroupMember {
  std::string_view name, group;
};
/// All of them, by name.
std::span<const GroupMember> group_members();

/// Calls a builder: `apply("softmax", {x}, {{"axis", 1}})`. Arguments belong to the parameters in order, those in `named` to the parameter
/// of the name. The first overload counts whose parameters take all of them. Throws Error for an unknown name (with near ones), a parameter
/// that is unknown, missing, given twice or of another kind, and as the builder does.
Values apply(std::string_view builder, const std::vector<CallArgument>& arguments, const std::map<std::string, CallArgument>& named = {},
             std::source_location at = std::source_location::current());

}  // namespace rlx
