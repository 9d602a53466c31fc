#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace rlx {

/// LLVM's names for element types in registers and in memory (bool: i1, i8; narrow floats: float, i16).
std::string llvm_register_type(DType t);
std::string llvm_memory_type(DType t);
std::string llvm_constant(const Expr& constant);

/// Prints scalar ops as LLVM instructions.
class LlvmScalars {
 public:
  struct Operand {
    std::string value;
    DType dtype;
  };
  using Assign = std::function<std::string(const std::string&)>;
  using Declare = std::function<void(const std::string&)>;
  LlvmScalars(Assign assign, Declare declare) : assign_(std::move(assign)), declare_(std::move(declare)) {}

  std::string emit(ScalarOp op, const std::vector<Operand>& args, DType result);
  std::string fma(const std::string& a, const std::string& b, const std::string& c, DType t);
  /// `flags` are LLVM's, of the additions or multiplications of floats.
  std::string combine(ReduceKind kind, const std::string& a, const std::string& b, DType t, const std::string& flags);
  std::string from_memory(const std::string& raw, DType t);
  std::string to_memory(const std::string& value, DType t);

 private:
  std::string call(const std::string& function, DType t, const std::vector<std::string>& args, const std::string& flags = "");
  std::string cast(const std::string& x, DType from, DType to);
  /// A float of that LLVM type as an integer of 8 or 16 bits, as `cast` says: NaN gives 0, what is beyond the nearest. Of comparisons, as
  /// LLVM makes no vector code of its own function for it.
  std::string small_integer(const std::string& x, const std::string& type, DType to);
  std::string narrow(const std::string& x, DType t);
  std::string integer_op(ScalarOp op, const std::vector<Operand>& args, DType t);
  std::string float_op(ScalarOp op, const std::vector<Operand>& args, DType t);
  std::string extremum(ScalarOp op, const std::string& x, const std::string& z, DType t);
  std::string compare(ScalarOp op, const Operand& a, const Operand& b);
  std::string divide(ScalarOp op, const std::string& x, const std::string& z, DType t);
  std::string shift(ScalarOp op, const std::string& x, const std::string& z, DType t);

  Assign assign_;
  Declare declare_;
};

}  // namespace rlx
