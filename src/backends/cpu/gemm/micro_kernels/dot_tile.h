#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"

// Dot products of rows and columns that lie side by side along their depth: lanes are steps of depth.

namespace rlx::cpu {

/// So many bytes of a row, whatever the width of vectors, go into the lanes of one sum: bits do not depend on the level.
inline constexpr int dot_line = 64;

namespace dots {

template <class S>
inline constexpr int group_lanes = 16 / sizeof(S);
template <class S, int bytes>
struct LanesOf {
  typedef S Type __attribute__((vector_size(bytes)));
};
template <class S, int bytes>
using Lanes = typename LanesOf<S, bytes>::Type;

/// In each group of 128 bits, elements of x and of z in turn: of the lower halves, or of the `upper` ones. `step`: of how many a turn is.
template <int step, bool upper, class Wide>
[[gnu::always_inline]] inline Wide interleave(Wide x, Wide z) {
  constexpr int lanes = sizeof(Wide) / sizeof(x[0]), of_group = group_lanes<std::remove_reference_t<decltype(x[0])>>;
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(
        x, z,
        (i % of_group / step % 2 * lanes + i / of_group * of_group + i % of_group / step / 2 * step + i % step + upper * of_group / 2)...);
  }(std::make_integer_sequence<int, lanes>());
}

/// The sums of each group of four vectors of floats or integers, or of two of doubles: result i of a group is that of x[i].
template <class Wide>
[[gnu::always_inline]] inline Wide sums_of_groups(const Wide* x) {
  if constexpr (sizeof(x[0][0]) == 8) {
    return interleave<1, false>(x[0], x[1]) + interleave<1, true>(x[0], x[1]);
  } else {
    const Wide first = interleave<1, false>(x[0], x[1]) + interleave<1, true>(x[0], x[1]);
    const Wide second = interleave<1, false>(x[2], x[3]) + interleave<1, true>(x[2], x[3]);
    return interleave<2, false>(first, second) + interleave<2, true>(first, second);
  }
}

/// The sums of rows * cols dot products in registers.
template <class Simd, int rows, int cols>
struct Block {
  using T = typename Simd::Element;
  using S = Sum<T>;
  using Vector = typename Simd::Vector;
  static constexpr int vectors = dot_line / static_cast<int>(sizeof(Vector)), count = rows * cols;
  static constexpr int vector_steps = sizeof(Vector) / sizeof(T), line_steps = vectors * vector_steps;

  Vector sums[vectors][count];

  [[gnu::always_inline]] static auto load(const T* from) {
    if constexpr (requires { Simd::load_units(nullptr); }) return Simd::load_units(reinterpret_cast<const Packed<T>*>(from));
    else return Simd::load(from);
  }
  [[gnu::always_inline]] static auto load_left(const T* from) {
    if constexpr (requires { Simd::raised; }) return Simd::raise(load(from));
    else return load(from);
  }

  [[gnu::always_inline]] Block() {
#pragma GCC unroll 32
    for (int v = 0; v < vectors; ++v)
#pragma GCC unroll 32
      for (int i = 0; i < count; ++i) sums[v][i] = Simd::zero();
  }

  /// One line of each.
  [[gnu::always_inline]] void add(const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      decltype(load_left(a)) left[rows];
#pragma GCC unroll 8
      for (int row = 0; row < rows; ++row) left[row] = load_left(a + row * a_stride + v * vector_steps);
#pragma GCC unroll 8
      for (int col = 0; col < cols; ++col) {
        const auto right = load(b + col * b_stride + v * vector_steps);
#pragma GCC unroll 8
        for (int row = 0; row < rows; ++row) {
          Vector& sum = sums[v][row * cols + col];
          sum = Simd::multiply_add(left[row], right, sum);
        }
      }
    }
  }

  /// The last steps, fewer than a line: zeros stand behind them.
  void add_last(std::int64_t steps, const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride) {
    T left[rows][line_steps] = {}, right[cols][line_steps] = {};
    for (int row = 0; row < rows; ++row) std::memcpy(left[row], a + row * a_stride, static_cast<std::size_t>(steps) * sizeof(T));
    for (int col = 0; col < cols; ++col) std::memcpy(right[col], b + col * b_stride, static_cast<std::size_t>(steps) * sizeof(T));
    add(left[0], line_steps, right[0], line_steps);
  }

  /// Each sum of lanes is ((g0 + g2) + (g1 + g3)) over groups of 128 bits, and within them (l0 + l2) + (l1 + l3), of doubles l0 + l1.
  [[gnu::always_inline]] void store(const S* less, S* c, std::int64_t c_row, std::int64_t c_col) const {
    using Wide = Lanes<S, sizeof(Vector)>;
    using Group = Lanes<S, 16>;
    constexpr int together = group_lanes<S>;
#pragma GCC unroll 32
    for (int first = 0; first < count; first += together) {
      std::array<Wide, vectors> of_groups;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        Wide some[together] = {};
#pragma GCC unroll 4
        for (int i = 0; i < together; ++i)
          if (first + i < count) some[i] = reinterpret_cast<Wide>(sums[v][first + i]);
        of_groups[static_cast<std::size_t>(v)] = sums_of_groups(some);
      }
      const auto groups = std::bit_cast<std::array<Group, 4>>(of_groups);
      const Group total = (groups[0] + groups[2]) + (groups[1] + groups[3]);
#pragma GCC unroll 4
      for (int i = 0; i < together; ++i) {
        const int row = (first + i) / cols, col = (first + i) % cols;
        if (first + i < count) c[row * c_row + col * c_col] = total[i] - less[col];
      }
    }
  }
};

template <class Simd, int rows, int cols>
void multiply_block(std::int64_t depth, const typename Simd::Element* a, std::int64_t a_stride, const typename Simd::Element* b,
                    std::int64_t b_stride, const Sum<typename Simd::Element>* less, Sum<typename Simd::Element>* c, std::int64_t c_row,
                    std::int64_t c_col) {
  using Here = Block<Simd, rows, cols>;
  Here block;
  std::int64_t at = 0;
  for (; at + Here::line_steps <= depth; at += Here::line_steps) block.add(a + at, a_stride, b + at, b_stride);
  if (at < depth) block.add_last(depth - at, a + at, a_stride, b + at, b_stride);
  block.store(less, c, c_row, c_col);
}

/// What rows that are raised bring too much: the products of a row of zeros, raised.
template <class Simd, int cols>
void find_surplus(std::int64_t depth, const typename Simd::Element* b, std::int64_t b_stride, Sum<typename Simd::Element>* surplus) {
  using Here = Block<Simd, 1, cols>;
  const typename Simd::Element zeros[Here::line_steps] = {};
  const Sum<typename Simd::Element> nothing[cols] = {};
  Here block;
  std::int64_t at = 0;
  for (; at + Here::line_steps <= depth; at += Here::line_steps) block.add(zeros, 0, b + at, b_stride);
  if (at < depth) block.add_last(depth - at, zeros, 0, b + at, b_stride);
  block.store(nothing, surplus, 0, 1);
}

/// How many sums are computed at a time: four columns at most, as the lines of more would push each other out of the first-level cache, and
/// six rows, as the processor follows no more streams; fewer where registers do not hold the sums and what they are made of.
template <class Simd>
struct Shape {
  static constexpr int vectors = dot_line / static_cast<int>(sizeof(typename Simd::Vector));
  static constexpr int most_sums = vectors > 1 ? 8 / vectors : requires { Simd::raised; } ? 20 : 24;
  static constexpr int columns(int cols) { return std::min({cols, most_sums, 4}); }
  static constexpr int rows(int cols) { return std::min(most_sums / columns(cols), 6); }
};

/// See MicroKernel::Dots.
template <class Simd, int cols>
void multiply(std::int64_t depth, const typename Simd::Element* a, std::int64_t a_stride, std::int64_t rows,
              const typename Simd::Element* b, std::int64_t b_stride, Sum<typename Simd::Element>* c, std::int64_t c_row,
              std::int64_t c_col) {
  constexpr int together = Shape<Simd>::columns(cols), left_over = cols % together, rows_together = Shape<Simd>::rows(cols);
  Sum<typename Simd::Element> surplus[cols] = {};
  const auto for_columns = [&](const auto& some) __attribute__((always_inline)) {
    int col = 0;
    for (; col + together <= cols; col += together) some(std::integral_constant<int, together>(), col);
    if constexpr (left_over > 0) some(std::integral_constant<int, left_over>(), col);
  };
  if constexpr (requires { Simd::raised; })
    for_columns([&](auto width, int col) { find_surplus<Simd, width>(depth, b + col * b_stride, b_stride, surplus + col); });
  const auto multiply_rows = [&](auto height, std::int64_t row) __attribute__((always_inline)) {
    for_columns([&](auto width, int col) {
      multiply_block<Simd, height, width>(depth, a + row * a_stride, a_stride, b + col * b_stride, b_stride, surplus + col,
                                          c + row * c_row + col * c_col, c_row, c_col);
    });
  };
  std::int64_t row = 0;
  for (; row + rows_together <= rows; row += rows_together) multiply_rows(std::integral_constant<int, rows_together>(), row);
  for (; row < rows; ++row) multiply_rows(std::integral_constant<int, 1>(), row);
}

}  // namespace dots

template <class Simd>
consteval MicroKernel<typename Simd::Element> with_dots(MicroKernel<typename Simd::Element> kernel) {
  [&]<int... index>(std::integer_sequence<int, index...>) {
    ((kernel.dots[index + 1] = dots::multiply<Simd, index + 1>), ...);
  }(std::make_integer_sequence<int, MicroKernel<typename Simd::Element>::most_few_columns>());
  return kernel;
}

}  // namespace rlx::cpu
