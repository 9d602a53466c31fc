#pragma once
#include <set>
#include <string>
#include <vector>

#include "emit/c_dialect.h"

namespace rlx {

/// Names of element types in registers and in memory (bool: bool, 8 bits; narrow floats: float, 16 bits).
std::string c_register_type(const CDialect& dialect, DType t);
std::string c_memory_type(const CDialect& dialect, DType t);
std::string c_unsigned_type(const CDialect& dialect, int bits);
std::string c_constant(const CDialect& dialect, const Expr& constant);
/// The start value of an accumulator.
std::string c_neutral(const CDialect& dialect, ReduceKind kind, DType t);

/// Prints scalar ops as expressions of C, and collects the functions they call.
class CScalars {
 public:
  explicit CScalars(const CDialect& dialect) : dialect_(dialect) {}

  struct Operand {
    std::string value;
    DType dtype;
  };
  std::string emit(ScalarOp op, const std::vector<Operand>& args, DType result);
  std::string fma(const std::string& a, const std::string& b, const std::string& c, DType t) const;
  std::string combine(ReduceKind kind, const std::string& a, const std::string& b, DType t);
  std::string from_memory(const std::string& raw, DType t);
  std::string to_memory(const std::string& value, DType t);

  /// Definitions of the functions that what was printed so far needs.
  std::string prelude() const;

 private:
  std::string helper(const std::string& name);
  std::string cast(const std::string& x, DType from, DType to);
  std::string bitcast(const std::string& x, DType from, DType to);

  const CDialect& dialect_;
  std::set<std::string> used_;
};

}  // namespace rlx
