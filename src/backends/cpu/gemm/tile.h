#pragma once
#include <cstdint>
#include <utility>

#include "backends/cpu/gemm/micro_kernel.h"

namespace rlx::cpu {

/// C (rows, panel_cols) = or += A * B, all sums in registers. `Simd` gives the scalar and vector types, the shape of the
/// register tile, and load, store, broadcast, zero and multiply_add.
///
/// Each file that instantiates this is compiled for another instruction set, so its `Simd` must be in an unnamed namespace: the linker
/// would otherwise be free to keep one instantiation for all levels.
template <class Simd, int rows>
void multiply_tile(std::int64_t depth, const typename Simd::Scalar* a, const typename Simd::Scalar* b, typename Simd::Scalar* c,
                   std::int64_t c_stride, bool accumulate) {
  using Vector = typename Simd::Vector;
  constexpr int vectors = Simd::panel_vectors, panel_cols = vectors * Simd::lanes;
  Vector sums[rows][vectors];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[r][v] = accumulate ? Simd::load(c + r * c_stride + v * Simd::lanes) : Simd::zero();
  }
  for (std::int64_t k = 0; k < depth; ++k, a += rows, b += panel_cols) {
    Vector right[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) right[v] = Simd::load(b + v * Simd::lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const Vector left = Simd::broadcast(a + r);
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sums[r][v] = Simd::multiply_add(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) Simd::store(c + r * c_stride + v * Simd::lanes, sums[r][v]);
  }
}

template <class Simd>
consteval MicroKernel<typename Simd::Scalar> make_micro_kernel() {
  MicroKernel<typename Simd::Scalar> kernel;
  kernel.max_rows = Simd::max_rows;
  kernel.panel_cols = Simd::panel_vectors * Simd::lanes;
  [&]<int... index>(std::integer_sequence<int, index...>) {
    ((kernel.tiles[index + 1] = multiply_tile<Simd, index + 1>), ...);
  }(std::make_integer_sequence<int, Simd::max_rows>());
  return kernel;
}

}  // namespace rlx::cpu
