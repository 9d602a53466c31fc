#pragma once
#include <string_view>

namespace rlx::gpu {

/// What all tiles of products share: where operands and sums lie.
inline constexpr std::string_view tiles = R"(#ifndef rlx_tiles
#define rlx_tiles
#ifndef rlx_inside
#define rlx_inside static __device__ __forceinline__
#endif
// The rows of a left operand, or the columns of a right one, along the depth: element (row, k) is at[row * stride + k], or
// at[k * stride + row] where rows lie side by side.
template <class T> struct rlx_operand {
  const T* at;
  long long stride, rows, depth;
};
// Where a sum lies on chip: what a warp stores or loads at a time lies in different banks.
template <int columns> rlx_inside int rlx_sum_place(int row, int column) {
  constexpr int turns = columns < 64 ? columns / 8 : 8;
  return row * columns + (column ^ row % turns * 8);
}

// Where the tile of this block lies, and of which item: so many rows of tiles are computed together, so that what they read is in the cache.
template <int rows, int columns> rlx_inside long long rlx_tile_place(long long m, long long n, long long& row, long long& column) {
  constexpr int group_rows = 8;
  const long long down = (m + rows - 1) / rows, across = (n + columns - 1) / columns, item = blockIdx.x / (down * across);
  const long long in_item = blockIdx.x % (down * across), first = in_item / (group_rows * across) * group_rows;
  const long long in_group = in_item - first * across, high = down - first < group_rows ? down - first : group_rows;
  row = (first + in_group % high) * rows, column = in_group / high * columns;
  return item;
}
#endif
)";

}  // namespace rlx::gpu
