#pragma once
#include <string_view>

namespace rlx::gpu {

/// A tile of a product of 16-bit numbers by the matrix units of a block of 256 threads: `rlx_tile<...>::run` leaves the sums on chip, as
/// `rlx_sum_place` finds them.
inline constexpr std::string_view matrix_tiles = R"(#ifndef rlx_matrix_tiles
#define rlx_matrix_tiles
// 8 elements of 16 bits from `from`, of which `there` are inside.
template <bool aligned> rlx_inside void rlx_copy_8(unsigned short* to, const unsigned short* from, int there) {
  if (aligned) return rlx_copy_16(to, from, 2 * there);
  for (int i = 0; i < 8; ++i) to[i] = i < there ? from[i] : 0;
}
rlx_inside int rlx_there(long long extent, long long first, int most) {
  const long long left = extent - first;
  return left < 0 ? 0 : left < most ? (int)left : most;
}
// `rows` rows of `depth` elements, on chip as such rows (along_depth) or as columns. Parts of 8 elements lie in a turned order, so that
// what matrices are loaded from lies in different banks.
template <int rows, int depth, bool along_depth> struct rlx_panel {
  static constexpr int width = along_depth ? depth : rows, turns = width < 64 ? width / 8 : 8;
  rlx_inside int place(int outer, int part) { return outer * width + (part ^ outer / (8 / turns) % turns) * 8; }
  template <bool aligned>
  rlx_inside void load(unsigned short* to, const rlx_operand<unsigned short>& from, long long row, long long k) {
    constexpr int parts = width / 8;
#pragma unroll
    for (int i = threadIdx.x; i < rows * depth / 8; i += 256) {
      const int outer = i / parts, part = i % parts;
      const long long at_outer = (along_depth ? row : k) + outer, at_inner = (along_depth ? k : row) + part * 8;
      int there = rlx_there(along_depth ? from.depth : from.rows, at_inner, 8);
      if (at_outer >= (along_depth ? from.rows : from.depth)) there = 0;
      rlx_copy_8<aligned>(to + place(outer, part), there > 0 ? from.at + at_outer * from.stride + at_inner : from.at, there);
    }
  }
  // 16 rows and 16 of the depth, from `row` and `k` on, in the order of a left operand (rows first) or a right one.
  template <bool rows_first> rlx_inside void fragments(unsigned (&to)[4], const unsigned short* from, int row, int k) {
    const int lane = threadIdx.x % 32, matrix = lane / 8, second = matrix / 2, first = matrix % 2;
    const int r = row + (rows_first ? first : second) * 8, d = k + (rows_first ? second : first) * 8;
    if (along_depth) rlx_load_matrices(to, from + place(r + lane % 8, d / 8));
    else rlx_load_transposed(to, from + place(d + lane % 8, r / 8));
  }
};
// The product of `rows` x `columns` sums by 8 warps: 2 below each other and 4 side by side, or all of it by each for a slice of the depth.
// Stages: of panels on their way.
template <class Element, int rows, int columns, bool a_along, bool b_along, int stages, int slices> struct rlx_tile {
  static constexpr int depth = slices > 1 ? 16 * slices : 64;
  using A = rlx_panel<rows, depth, a_along>;
  using B = rlx_panel<columns, depth, b_along>;
  using Operand = rlx_operand<unsigned short>;
  using Sum = typename Element::Sum;
  static constexpr int stage = (rows + columns) * depth;
  static constexpr int high = slices > 1 ? rows : rows / 2, wide = slices > 1 ? columns : columns / 4;

  template <bool aligned_a, bool aligned_b>
  rlx_inside void load(unsigned short* panels, const Operand& a, const Operand& b, long long row, long long column, int step) {
    if ((long long)step * depth < a.depth) {
      unsigned short* to = panels + step % stages * stage;
      A::template load<aligned_a>(to, a, row, (long long)step * depth);
      B::template load<aligned_b>(to + rows * depth, b, column, (long long)step * depth);
    }
    rlx_end_group();
  }
  template <bool aligned_a, bool aligned_b>
  rlx_inside void multiply(unsigned short* panels, const Operand& a, const Operand& b, long long row, long long column) {
    const int warp = threadIdx.x / 32, slice = slices > 1 ? warp : 0;
    const int high_at = slices > 1 ? 0 : warp / 4 * high, wide_at = slices > 1 ? 0 : warp % 4 * wide;
    Sum sums[high / 16][wide / 8][4] = {};
    for (int step = 0; step < stages - 1; ++step) load<aligned_a, aligned_b>(panels, a, b, row, column, step);
    const int steps = (int)((a.depth + depth - 1) / depth);
    for (int step = 0; step < steps; ++step) {
      rlx_wait_groups<stages - 2>();
      __syncthreads();
      load<aligned_a, aligned_b>(panels, a, b, row, column, step + stages - 1);
      const unsigned short *left = panels + step % stages * stage, *right = left + rows * depth;
#pragma unroll
      for (int k = 16 * slice; k < depth; k += 16 * slices) {
        unsigned x[high / 16][4], y[wide / 16][4];
#pragma unroll
        for (int i = 0; i < high / 16; ++i) A::template fragments<true>(x[i], left, high_at + 16 * i, k);
#pragma unroll
        for (int j = 0; j < wide / 16; ++j) B::template fragments<false>(y[j], right, wide_at + 16 * j, k);
#pragma unroll
        for (int i = 0; i < high / 16; ++i)
#pragma unroll
          for (int j = 0; j < wide / 8; ++j) rlx_multiply(Element(), sums[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
      }
    }
    rlx_wait_groups<0>();
    keep(panels, sums);
  }
  // On chip, where all have read what was there.
  rlx_inside void keep(void* on_chip, const Sum (&sums)[high / 16][wide / 8][4]) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, slice = slices > 1 ? warp : 0;
    const int high_at = slices > 1 ? 0 : warp / 4 * high, wide_at = slices > 1 ? 0 : warp % 4 * wide;
    __syncthreads();
    Sum* tile = (Sum*)on_chip + slice * rows * columns;
#pragma unroll
    for (int i = 0; i < high / 16; ++i)
#pragma unroll
      for (int j = 0; j < wide / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          tile[rlx_sum_place<columns>(high_at + 16 * i + e / 2 * 8 + lane / 4, wide_at + 8 * j + lane % 4 * 2 + e % 2)] = sums[i][j][e];
    __syncthreads();
    if (slices > 1) add_slices((Sum*)on_chip);
  }
  // In their order.
  rlx_inside void add_slices(Sum* tile) {
    for (int i = threadIdx.x; i < rows * columns; i += 256)
      for (int slice = 1; slice < slices; ++slice) tile[i] += tile[slice * rows * columns + i];
    __syncthreads();
  }
  rlx_inside bool is_aligned(const Operand& operand) { return (unsigned long long)operand.at % 16 == 0 && operand.stride % 8 == 0; }
  rlx_inside const Sum* run(void* on_chip, const Operand& a, const Operand& b, long long row, long long column) {
    unsigned short* panels = (unsigned short*)on_chip;
    if (is_aligned(a) && is_aligned(b)) multiply<true, true>(panels, a, b, row, column);
    else multiply<false, false>(panels, a, b, row, column);
    return (const Sum*)on_chip;
  }
};
#endif
)";

}  // namespace rlx::gpu
