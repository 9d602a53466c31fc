#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

namespace rlx {

/// The start value of an accumulator. Those of max and min are the lowest and the highest number of a type.
Expr neutral_of(ReduceKind kind, DType t);

/// Scalar ops as expressions of languages that have these, C's family and WGSL; collects the functions that they call.
class ScalarText {
 public:
  struct Operand {
    std::string value;
    DType dtype;
  };
  ScalarText() = default;
  virtual ~ScalarText() = default;
  ScalarText(const ScalarText&) = delete;
  ScalarText& operator=(const ScalarText&) = delete;

  virtual std::string emit(ScalarOp op, const std::vector<Operand>& args, DType result);
  std::string combine(ReduceKind kind, const std::string& a, const std::string& b, DType t);
  virtual std::string fma(const std::string& a, const std::string& b, const std::string& c, DType t) = 0;
  virtual std::string literal(const Expr& constant) const = 0;
  /// Of a type in registers.
  virtual std::string type_name(DType t) const = 0;
  /// Definitions of the functions that what was printed so far needs.
  virtual std::string prelude() const = 0;

 protected:
  /// An op on operands of a class of types, where x, z, w are operands, t is the type's short name and bits its width; and what else the
  /// language puts in its place. Empty: it has none.
  virtual std::string_view pattern(ScalarOp op, DType t) const = 0;
  struct Words {
    std::string to_type, to_wrapping;  // conversions: to the type, and to the one in which its arithmetic wraps
    std::string_view suffix = {}, nearest = {};
  };
  virtual Words words(DType /*t*/) const { return {}; }
  virtual std::string cast(const std::string& x, DType from, DType to) = 0;
  virtual std::string bitcast(const std::string& x, DType from, DType to) = 0;
  /// What an op gives, as a number of its type.
  virtual std::string wrapped(const std::string& x, DType /*t*/) { return x; }
  std::string call(const std::string& name, const std::string& arguments);

  std::set<std::string> used_;
};

}  // namespace rlx
