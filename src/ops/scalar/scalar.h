#pragma once
#include <cstdint>

#include "ir/op.h"

namespace rlx {

/// The scalar operations of kernels: the rows of the scalar table, then those whose types an attribute or an operand decides, and fma.
enum class ScalarOp : std::uint8_t {
#define SCALAR(op, ...) op,
#include "ops/scalar/scalar.def"
#undef SCALAR
  select,
  cast,
  bitcast,
  complex,
  real,
  imag,
  fma,
};

inline constexpr int scalar_table_size = static_cast<int>(ScalarOp::select);

struct ScalarInfo {
  std::string_view name;
  int operands;
  bool gives_bool;
  double low, high;
  double ulp;
  int work;
  std::string_view formula;
};
/// The row of an op of the table (not of those behind it).
const ScalarInfo& scalar_info(ScalarOp op);
/// What a kernel spends on one element, in additions.
int work(ScalarOp op);
std::string_view name(ScalarOp op);

/// The reference's evaluation of an op of the table, element by element.
void evaluate_scalar(ScalarOp op, std::span<const Array> operands, Array& result);

}  // namespace rlx
