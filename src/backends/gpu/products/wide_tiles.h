#pragma once
#include <string_view>

namespace rlx::gpu {

/// Products on Hopper: tiles whose operands the copy engine brings while warps multiply what is on chip.
inline constexpr std::string_view wide_tiles = R"(#ifndef rlx_wide_tiles_text
#define rlx_wide_tiles_text
// Tiles of 128 x `columns` sums by 8 warps, 64 rows by each half of them, while 4 others ask for what is multiplied next. `stages`: of
// panels on chip.
template <class Element, int columns, bool a_along, bool b_along, int stages> struct rlx_wide_tiles {
  static constexpr int rows = 128, depth = 64, threads = 384, side = 64, box = side * depth, group_rows = 16;
  static constexpr int stage = (rows + columns) * depth, stage_bytes = 2 * stage;
  static constexpr int staged = 16 * side, bytes = 1024 + stages * stage_bytes + 8 * staged * 4 + 2 * stages * 8;

  // So many rows of tiles are computed together, so that what they read is in the cache.
  rlx_inside void place(long long tile, long long row_tiles, long long column_tiles, long long& row, long long& column, long long& item) {
    const long long in_item = tile % (row_tiles * column_tiles), group = in_item / (group_rows * column_tiles);
    const long long first = group * group_rows, high = row_tiles - first < group_rows ? row_tiles - first : group_rows;
    const long long in_group = in_item - group * group_rows * column_tiles;
    item = tile / (row_tiles * column_tiles), row = (first + in_group % high) * rows, column = in_group / high * columns;
  }
  template <int width, bool along>
  rlx_inside void load(unsigned short* to, const rlx_map& map, rlx_barrier* full, long long at, long long k, long long item) {
    if (along) return rlx_copy_box(to, map, full, (int)k, (int)at, (int)item);
#pragma unroll
    for (int i = 0; i < width / side; ++i) rlx_copy_box(to + i * box, map, full, (int)at + i * side, (int)k, (int)item);
  }
  template <class Store>
  rlx_inside void run(void* on_chip, const rlx_map& a, const rlx_map& b, long long items, long long m, long long n, long long k,
                      const Store& store) {
    char* const base = (char*)on_chip + (-rlx_on_chip_address(on_chip) & 1023);
    unsigned short* const panels = (unsigned short*)base;
    float* const staging = (float*)(base + stages * stage_bytes);
    rlx_barrier *const full = (rlx_barrier*)(staging + 8 * staged), *const empty = full + stages;
    if (threadIdx.x == 0) {
      for (int i = 0; i < stages; ++i) rlx_begin_barrier(full + i, 1), rlx_begin_barrier(empty + i, 2);
      rlx_begun_barriers();
    }
    __syncthreads();
    const long long row_tiles = (m + rows - 1) / rows, column_tiles = (n + columns - 1) / columns;
    const long long tiles = items * row_tiles * column_tiles;
    const int steps = (int)((k + depth - 1) / depth), group = threadIdx.x / 128;
    int at = 0, phase = 0;
    long long row, column, item;
    if (group == 0) {
      rlx_fewer_registers<40>();
      if (threadIdx.x != 0) return;
      for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        place(tile, row_tiles, column_tiles, row, column, item);
        for (int step = 0; step < steps; ++step) {
          rlx_wait(empty + at, phase ^ 1);
          rlx_arrive_with(full + at, stage_bytes);
          unsigned short* const to = panels + at * stage;
          load<rows, a_along>(to, a, full + at, row, step * depth, item);
          load<columns, b_along>(to + rows * depth, b, full + at, column, step * depth, item);
          if (++at == stages) at = 0, phase ^= 1;
        }
      }
      return;
    }
    rlx_more_registers<232>();
    const int warp = threadIdx.x / 32 - 4, lane = threadIdx.x % 32;
    const bool tells = threadIdx.x % 128 == 0;
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      place(tile, row_tiles, column_tiles, row, column, item);
      float sums[columns / 2];
      for (int step = 0; step < steps; ++step) {
        rlx_wait(full + at, phase);
        const unsigned short *const left = panels + at * stage + (group - 1) * box, *const right = panels + at * stage + rows * depth;
        rlx_begin_products();
#pragma unroll
        for (int i = 0; i < depth; i += 16)
          rlx_multiply_group<!a_along, !b_along>(Element(), sums, rlx_matrix(left + i * (a_along ? 1 : side), 2 * box),
                                                 rlx_matrix(right + i * (b_along ? 1 : side), 2 * box), step + i > 0);
        rlx_end_products();
        rlx_wait_products<1>();
        if (tells && step > 0) rlx_arrive(empty + (at == 0 ? stages : at) - 1);
        if (++at == stages) at = 0, phase ^= 1;
      }
      rlx_wait_products<0>();
      if (tells) rlx_arrive(empty + (at == 0 ? stages : at) - 1);
      float* const tile_of_warp = staging + warp * staged;
      const long long first = row + warp * 16;
      const int high = first + 16 <= m ? 16 : first < m ? (int)(m - first) : 0;
#pragma unroll
      for (int c = 0; c < columns / side; ++c) {
#pragma unroll
        for (int j = 0; j < side / 2; ++j)
          tile_of_warp[rlx_sum_place<side>(j / 2 % 2 * 8 + lane / 4, j / 4 * 8 + lane % 4 * 2 + j % 2)] = sums[c * (side / 2) + j];
        __syncwarp();
#pragma unroll
        for (int part = 0; part < side; part += 32) {
          const long long to_column = column + c * side + part + lane;
          if (to_column >= n) continue;
#pragma unroll 4
          for (int r = 0; r < high; ++r) store(item, first + r, to_column, tile_of_warp[rlx_sum_place<side>(r, part + lane)]);
        }
        __syncwarp();
      }
    }
  }
};
#endif
)";

}  // namespace rlx::gpu
