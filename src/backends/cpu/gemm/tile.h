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

constexpr std::int64_t long_depth = 64;  // steps of a tile that take longer than to fetch where it goes

/// A step of depth whose rows lie side by side.
template <class T>
struct SideBySide {
  const T* first;
  const T* row(int r) const { return first + r; }
};

/// A step of depth whose rows lie `stride` apart, found from every fifth of them. The compiler must not know that the steps of a loop have
/// much in common: it would keep a pointer to each row, for which there are no registers.
template <class T>
struct Apart {
  static constexpr int group = 5, groups = 3;
  const std::byte* bases[groups];
  std::int64_t stride;  // in bytes

  [[gnu::always_inline]] Apart(const T* first, std::int64_t byte_stride) : stride(byte_stride) {
    const std::byte* base = reinterpret_cast<const std::byte*>(first);
    for (const std::byte*& each : bases) {
      asm("" : "+r"(base));
      each = base;
      base += group * stride;
    }
  }
  const T* row(int r) const { return reinterpret_cast<const T*>(bases[r / group] + r % group * stride); }
};

/// C (rows, panel_cols) = or += A * B, all sums in registers. `Simd` gives the element and vector types, the shape of the
/// register tile, and load, store, broadcast, zero and multiply_add. Where they differ from those of sums, it also has
/// `load_units` of the operands; and `raised`, where the kernel is.
///
/// Each file that instantiates this is compiled for another instruction set, so its `Simd` must be in an unnamed namespace: the linker
/// would otherwise be free to keep one instantiation for all levels.
template <class Simd, int rows, class Step, class Broadcast>
[[gnu::always_inline]] inline void multiply_rows(std::int64_t depth, const Step& step_of_a, const Broadcast& broadcast,
                                                 const Packed<typename Simd::Element>* b,
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
  if (depth >= long_depth) {  // C is fetched meanwhile: stores that miss wait for each other
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) __builtin_prefetch(c + r * c_stride + v * Simd::lanes, 1);
  }
  for (std::int64_t k = 0; k < depth; ++k, b += panel_cols) {
    const auto a = step_of_a(k);
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
      const auto left = broadcast(a.row(r));
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
  const auto step_of_a = [a](std::int64_t k) { return SideBySide{a + k * rows}; };
  multiply_rows<Simd, rows>(depth, step_of_a, Simd::broadcast, b, start, c, c_stride, accumulate);
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
  static_assert(rows <= Apart<Left<T>>::group * Apart<Left<T>>::groups);
  const std::int64_t bytes = stride * static_cast<std::int64_t>(sizeof(Left<T>));
  const auto by_one = [a, bytes](std::int64_t k) { return Apart<Left<T>>(a + k * Format<T>::group, bytes); };
  const auto by_table = [a, bytes, steps](std::int64_t k) { return Apart<Left<T>>(a + steps[k], bytes); };
  if (!steps) multiply_rows<Simd, rows>(depth, by_one, broadcast, b, start, c, c_stride, accumulate);
  else if constexpr (Format<T>::group == 1) multiply_rows<Simd, rows>(depth, by_table, broadcast, b, start, c, c_stride, accumulate);
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
