#pragma once
#include <set>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace rlx {

/// Names of C for element types in registers and in memory (bool: bool, uint8_t; narrow floats: float, uint16_t).
std::string c_register_type(DType t);
std::string c_memory_type(DType t);
std::string c_constant(const Expr& constant);
/// The start value of an accumulator.
std::string c_neutral(ReduceKind kind, DType t);

/// Prints scalar ops as C expressions, and collects the functions they call.
class CScalars {
 public:
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

  std::set<std::string> used_;
};

}  // namespace rlx
