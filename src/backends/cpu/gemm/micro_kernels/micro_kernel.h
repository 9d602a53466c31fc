#pragma once
#include <cstdint>

#include "backends/cpu/gemm/micro_kernels/panel_format.h"
#include "backends/cpu/machine/cpu_features.h"

namespace rlx::cpu {

/// The innermost piece of a matrix product: a tile of C that stays in registers while the whole depth passes by.
///
/// A is packed in panels of 1..max_rows rows, `rows` units per step of depth; B in panels of panel_cols columns. Every element of C is
/// one chain of multiply-adds from zero, or from `start` where the kernel is raised, step after step of depth: in ascending depth, but that
/// instructions choose the order within a step. Those of AVX512-BF16 take the later of a pair first. Those of AMX sum the first numbers of
/// the 16 pairs of a step in one chain from zero, the second ones in another, and add the sum of both, so bf16 products have other bits
/// with AMX than without; both take denormal numbers for zeros. That of bf16 on ARM adds a pair up, and adds that to the sum, both rounded
/// to odd: off by less than one unit in the last place, where rounding to nearest is by half of it. So the bits of an element depend
/// neither on its place in a tile, nor on how rows, columns and depth are cut, nor on the threads; nor, for integers, on the level; nor,
/// for f32, f64 and f16, on the level among those with fused multiply-add; those of f16 are the
/// bits of f32 products with the same numbers.
template <class T>
struct MicroKernel {
  /// C (rows, panel_cols) = or += A (depth / depth_step, rows, depth_step) * B (depth, panel_cols), where depth counts units and, as rows
  /// do, whole steps; `c_stride` elements from row to row of C, whose first `cols` columns are there: panel_cols, or fewer where the kernel
  /// `stores_parts`. `start` (panel_cols): where the sums of a column begin, read when the kernel is `raised`.
  using Tile = void (*)(std::int64_t depth, const Packed<Left<T>>* a, const Packed<T>* b, const Sum<T>* start, Sum<T>* c,
                        std::int64_t c_stride, std::int64_t cols, bool accumulate);

  /// The same for rows that are read where they lie: unit k of row r begins at a[r * stride + k * group], or a[r * stride + steps[k]] where
  /// there is a table, of units that are elements. `depth` counts elements; behind whole units it may end within one, if a row has as many
  /// elements as a unit.
  using Rows = void (*)(std::int64_t depth, const Left<T>* a, std::int64_t stride, const std::int64_t* steps, const Packed<T>* b,
                        const Sum<T>* start, Sum<T>* c, std::int64_t c_stride, std::int64_t cols, bool accumulate);

  /// One row of C, of `panels_beside` whole panels of B that lie `panel_units` apart, whose sums do not wait for each other; `a` as above,
  /// of units side by side.
  using Beside = void (*)(std::int64_t depth, const Left<T>* a, const Packed<T>* b, std::int64_t panel_units, Sum<T>* c, bool accumulate);

  /// C^T (cols, rows) = (A * B)^T for rows, few_columns_rows or more, of `depth` elements that are read where they lie, `stride` elements
  /// apart, and for the first columns of a panel of B: `c_stride` elements from column to column of C, whose rows lie side by side.
  using FewColumns = void (*)(std::int64_t depth, const Left<T>* a, std::int64_t stride, std::int64_t rows, const Packed<T>* b,
                              const Sum<T>* start, Sum<T>* c, std::int64_t c_stride);

  /// C = A * B for rows and columns of `depth` elements that lie side by side, `a_stride` and `b_stride` elements apart. Each element is
  /// summed lane by lane, see dot_tile.h; strides of C are from row to row and from column to column.
  using Dots = void (*)(std::int64_t depth, const T* a, std::int64_t a_stride, std::int64_t rows, const T* b, std::int64_t b_stride,
                        Sum<T>* c, std::int64_t c_row, std::int64_t c_col);

  /// The transforms of winograd_tile.h.
  using TransformWindow = void (*)(const T* x, const std::int64_t* lines, const std::int64_t* positions, std::int64_t channels, T* to,
                                   std::int64_t distance);
  using TransformProducts = void (*)(const T* from, std::int64_t distance, T* to, std::int64_t line);

  static constexpr int rows_limit = 32;
  static constexpr std::int64_t panels_beside = 4;
  static constexpr int most_few_columns = 8, few_columns_rows = 16;

  int max_rows = 0;
  int panel_cols = 0;
  int row_step = 1, depth_step = 1;  // panels are padded with zeros to whole steps: those of A both ways, those of B in depth
  std::int64_t longest_pass = 2048;  // units of depth, which the sums in registers take before the next tile
  bool raised = false;               // 8-bit integers: A is packed as unsigned a + 128, and `start` is -128 times the sum of B's column
  bool stores_parts = false;         // of a panel's columns; else the last tiles of a row go through memory of whole ones
  Tile tiles[rows_limit + 1] = {};   // by rows
  Rows rows_in_place[rows_limit + 1] = {};            // by rows; null where tiles take whole steps
  Beside beside = nullptr;                            // null: one panel at a time
  FewColumns few_columns[most_few_columns + 1] = {};  // by columns; null: they are computed as others
  Dots dots[most_few_columns + 1] = {};               // by columns; null: there are none
  TransformWindow transform_window = nullptr;         // of f32 and f64, as the next
  TransformProducts transform_products = nullptr;
  void (*begin)() = nullptr;  // what a thread calls before it runs tiles, and after; null: nothing
  void (*end)() = nullptr;

  /// The units of a panel's depth, in whole steps.
  std::int64_t units(std::int64_t k) const {
    const std::int64_t units = units_of<T>(k);
    return depth_step == 1 ? units : (units + depth_step - 1) / depth_step * depth_step;
  }

  /// Units of a panel of B: one row of starts where the kernel is raised, then the depth.
  std::int64_t panel_units(std::int64_t k) const { return (units(k) + raised) * panel_cols; }
};

/// Whether a level on this CPU has a kernel for T: every one for float, double, Bf16Weight and 8-bit integers; for Bf16 and F16 those with
/// such instructions.
template <class T>
bool has_micro_kernel(CpuLevel level);

/// The kernel of a level; T is float, double or a narrow type of format.h. Throws InternalError where there is none.
template <class T>
const MicroKernel<T>& micro_kernel(CpuLevel level);

}  // namespace rlx::cpu
