#pragma once
#include "ops/wide.h"

namespace rlx {

// What the decompositions share. Matrices are the last two axes.

inline Value adjoint(Value x) { return conj(swap_axes(x, -1, -2)); }
inline Value real_part(Value x) { return is_complex(x.dtype()) ? real(x) : x; }
/// |x|^2, real.
inline Value squared_size(Value x) { return is_complex(x.dtype()) ? real(x) * real(x) + imag(x) * imag(x) : x * x; }
inline DType real_type(DType type) { return type == c64 ? f32 : type == c128 ? f64 : type; }
inline double rounding(DType type) { return real_type(type) == f32 ? 0x1p-23 : 0x1p-52; }

/// The axes in front of the matrices of x.
inline Dims lead_of(Value x) { return Dims(x.shape().begin(), x.shape().end() - 2); }
inline Dims appended(Dims shape, const Dims& more) {
  shape.insert(shape.end(), more.begin(), more.end());
  return shape;
}

/// The matrices of x as (count, rows, columns).
inline Value stacked(Value x) {
  Dim count = 1;
  for (const Dim& size : lead_of(x)) count = count * size;
  return reshape(x, {count, x.dim(-2), x.dim(-1)});
}

/// Ones on the diagonals of `shape`, zeros elsewhere, in x's type.
inline Value identity_of(Value x, const Dims& shape) { return cast(eq(iota(x, shape, i32, -2), iota(x, shape, i32, -1)), x.dtype()); }

/// The power of two below the largest element of each matrix, (..., 1, 1) and real: squares of x over it neither overflow nor vanish.
inline Value scale_of(Value x) {
  const Value largest = reduce_max(abs(x), {-2, -1}, true);
  const Value usual = logical_and(gt(largest, like(largest, 0)), lt(largest, like(largest, infinity)));
  return select(usual, exp2(floor(log2(select(usual, largest, like(largest, 1))))), like(largest, 1));
}

/// The batching rule of ops on matrices, for which a batch is one more axis in front.
template <class T>
Values batch_of_matrices(const T& op, std::span<const Value> x) {
  return Op<T>().all(op, x);
}

/// Throws Error unless x holds matrices of f32, f64 or complex.
inline void check_matrices(std::string_view op, Value x) {
  if (x.rank() < 2 || !(x.dtype() == f32 || x.dtype() == f64 || is_complex(x.dtype())))
    fail("rlx.{}: {} (allowed: matrices of f32, f64 or complex)", op, x.type().to_string());
}

}  // namespace rlx
