#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/gemm/micro_kernel.h"
#include "backends/cpu/gemm/winograd_tile.h"

namespace rlx::cpu {

/// With few rows narrow weights come from memory, and the processor does not ask for the next ones in time.
constexpr int few_rows = 4;
constexpr std::int64_t prefetch_ahead = 8192;  // bytes

/// C (rows, panel_cols) = or += A * B, all sums in registers. `Simd` gives the element and vector types, the shape of the
/// register tile, and load, store, broadcast, zero and multiply_add. Where they differ from those of sums, it also has
/// `load_units` of the operands; and `raised`, where the kernel is.
///
/// Each file that instantiates this is compiled for another instruction set, so its `Simd` must be in an unnamed namespace: the linker
/// would otherwise be free to keep one instantiation for all levels.
template <class Simd, int rows, class Step, class Broadcast>
[[gnu::always_inline]] inline void multiply_rows(std::int64_t depth, const Step& step_of_a, std::int64_t row_stride,
                                                 const Broadcast& broadcast, const Packed<typename Simd::Element>* b,
                                                 [[maybe_unused]] const Sum<typename Simd::Element>* start, Sum<typename Simd::Element>* c,
                                                 std::int64_t c_stride, bool accumulate) {
  using Vector = typename Simd::Vector;
  constexpr int vectors = Simd::panel_vectors, panel_cols = vectors * Simd::lanes;
  const auto load_right = [](const Packed<typename Simd::Element>* from) {
    if constexpr (requires { Simd::load_units(from); }) return Simd::load_units(from);
    else return Simd::load(from);
  };
  Vector sums[rows][vectors];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      if (accumulate) sums[r][v] = Simd::load(c + r * c_stride + v * Simd::lanes);
      else if constexpr (requires { Simd::raised; }) sums[r][v] = Simd::load(start + v * Simd::lanes);
      else sums[r][v] = Simd::zero();
    }
  }
  for (std::int64_t k = 0; k < depth; ++k, b += panel_cols) {
    const auto* const a = step_of_a(k);
    if constexpr (rows <= few_rows && sizeof(Packed<typename Simd::Element>) < sizeof(Left<typename Simd::Element>)) {
#pragma GCC unroll 4
      for (std::size_t line = 0; line < panel_cols * sizeof(*b); line += 64)
        __builtin_prefetch(reinterpret_cast<const std::byte*>(b) + prefetch_ahead + line);
    }
    decltype(load_right(b)) right[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) right[v] = load_right(b + v * Simd::lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const auto left = broadcast(a + r * row_stride);
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

template <class Simd, int rows>
void multiply_tile(std::int64_t depth, const Packed<Left<typename Simd::Element>>* a, const Packed<typename Simd::Element>* b,
                   const Sum<typename Simd::Element>* start, Sum<typename Simd::Element>* c, std::int64_t c_stride, bool accumulate) {
  const auto step_of_a = [a](std::int64_t k) { return a + k * rows; };
  multiply_rows<Simd, rows>(depth, step_of_a, 1, Simd::broadcast, b, start, c, c_stride, accumulate);
}

template <class Simd, int rows>
void multiply_in_place(std::int64_t depth, const Left<typename Simd::Element>* a, std::int64_t stride, const std::int64_t* steps,
                       const Packed<typename Simd::Element>* b, const Sum<typename Simd::Element>* start, Sum<typename Simd::Element>* c,
                       std::int64_t c_stride, bool accumulate) {
  using T = typename Simd::Element;
  const auto broadcast = [](const Left<T>* from) {
    Packed<Left<T>> unit;
    std::memcpy(&unit, from, sizeof(unit));  // units of narrow elements lie anywhere
    if constexpr (requires { Simd::raised; }) return Simd::raise(Simd::broadcast(&unit));
    else return Simd::broadcast(&unit);
  };
  const auto by_one = [a](std::int64_t k) { return a + k * Format<T>::group; };
  const auto by_table = [a, steps](std::int64_t k) { return a + steps[k]; };
  if (!steps) multiply_rows<Simd, rows>(depth, by_one, stride, broadcast, b, start, c, c_stride, accumulate);
  else if constexpr (Format<T>::group == 1)
    multiply_rows<Simd, rows>(depth, by_table, stride, broadcast, b, start, c, c_stride, accumulate);
}

template <class Simd>
consteval MicroKernel<typename Simd::Element> make_micro_kernel() {
  MicroKernel<typename Simd::Element> kernel;
  kernel.raised = requires { Simd::raised; };
  kernel.max_rows = Simd::max_rows;
  kernel.panel_cols = Simd::panel_vectors * Simd::lanes;
  [&]<int... index>(std::integer_sequence<int, index...>) {
    ((kernel.tiles[index + 1] = multiply_tile<Simd, index + 1>), ...);
    ((kernel.rows_in_place[index + 1] = multiply_in_place<Simd, index + 1>), ...);
  }(std::make_integer_sequence<int, Simd::max_rows>());
  if constexpr (std::is_floating_point_v<typename Simd::Element>) {
    kernel.transform_window = transform_window<Simd>;
    kernel.transform_products = transform_products<Simd>;
  }
  return kernel;
}

}  // namespace rlx::cpu
