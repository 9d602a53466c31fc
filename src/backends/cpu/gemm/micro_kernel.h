#pragma once
#include <cstdint>

#include "backends/cpu/cpu_features.h"

namespace rlx::cpu {

/// The innermost piece of a matrix product: a tile of C that stays in registers while the whole depth passes by.
///
/// A is packed in panels of 1..max_rows rows, `rows` values per step of depth; B in panels of panel_cols columns. Every element of C is
/// one chain of multiply-adds in ascending depth from zero, so its bits depend neither on its place in a tile, nor on how rows, columns
/// and depth are cut, nor on the threads; nor on the level, among levels with fused multiply-add.
template <class T>
struct MicroKernel {
  /// C (rows, panel_cols) = or += A (depth, rows) * B (depth, panel_cols); `c_stride` elements from row to row of C.
  using Tile = void (*)(std::int64_t depth, const T* a, const T* b, T* c, std::int64_t c_stride, bool accumulate);

  static constexpr int rows_limit = 14;

  int max_rows = 0;
  int panel_cols = 0;
  Tile tiles[rows_limit + 1] = {};  // by rows
};

/// The kernel of a level; T is float or double. Throws InternalError for a level that this build has no kernel for.
template <class T>
const MicroKernel<T>& micro_kernel(CpuLevel level);

}  // namespace rlx::cpu
