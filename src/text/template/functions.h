#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/template/value.h"

/// What templates call by name: filters, tests, methods and global functions.
namespace rlx::jinja {

/// Arguments in the order of a function's parameters; nothing for those that the call left out.
using Bound = std::vector<std::optional<Value>>;

/// Whether the call has the argument, and not None in its place.
inline bool is_given(const std::optional<Value>& argument) { return argument && !argument->is<None>(); }

/// A function with the names of its parameters, of which the first `required` must be given. `*` stands for what is left over: a tuple and
/// a dict.
struct Function {
  std::string_view name;
  std::string_view parameters;  // "value width first blank"
  std::size_t required;
  Value (*call)(Renderer& run, const Bound& arguments);
};

/// Throws Error naming the function for missing, unknown and superfluous arguments.
Value call_function(Renderer& run, const Function& function, const Arguments& arguments);

/// The value first, then the filter's own parameters.
const Function* find_filter(std::string_view name);
const Function* find_test(std::string_view name);
/// The object first.
const Function* find_method(const Value& object, std::string_view name);
const Function* find_global(std::string_view name);

/// Parts of the tables that the functions above search.
std::span<const Function> text_filters();
std::span<const Function> sequence_filters();
std::span<const Function> string_methods();

/// All names, for messages.
std::vector<std::string_view> filter_names();
std::vector<std::string_view> test_names();

/// A function as a value, with the object that it is a method of.
class Callable : public Object {
 public:
  explicit Callable(const Function& function, std::optional<Value> self = std::nullopt) : function_(function), self_(self) {}
  std::string_view type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Renderer& run, const Arguments& arguments) const override;

 private:
  const Function& function_;
  std::optional<Value> self_;
};

}  // namespace rlx::jinja
