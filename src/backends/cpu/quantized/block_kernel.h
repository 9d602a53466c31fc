#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/cpu/machine/cpu_features.h"

namespace rlx::cpu {

/// How the left operand of a product with block weights is packed: in tiles of up to BlockKernel::most_rows rows, which follow each other.
/// A tile has for each `step` values of depth
///   codes (rows, step) i8: x / scale, to the nearest
///   scales (rows) f32: the largest |x| of the step / 127
///   starts (halves, rows) i32, where offset is not 0: -offset times the sum of the codes of a half
///   sums (halves, rows) f32, where the weights have minima: the scale times the sum of the codes of a half
struct RowFormat {
  static constexpr std::int64_t step = 32;

  int offset = 0;  // by how much the codes of the weights are raised to be unsigned
  int halves = 1;  // pieces of a step whose weights have scales of their own
  bool minima = false;

  bool operator==(const RowFormat&) const = default;
  /// Bytes of a step of one row.
  constexpr std::int64_t row_bytes() const { return step + 4 + 4 * halves * ((offset != 0 ? 1 : 0) + (minima ? 1 : 0)); }
};

/// Products of rows with weights of one block type, exact in integers within a step, then summed in f32 in ascending depth: the bits of an
/// element depend on its row of x and its row of weights alone.
///
/// Weights (n, k) are packed in panels of `columns` rows of weights: first the scales of all blocks, then the codes of all blocks, in each
/// the rows side by side. Scales of a few bits become bytes or halves there, codes of grids and ternary digits whole bits.
struct BlockKernel {
  static constexpr int columns = 16, most_rows = 16;

  /// C (rows, columns) = x (rows, k) * panel (columns, k)^T; `x` is a tile as RowFormat says, `blocks` = k / block_values.
  using Tile = void (*)(const std::byte* scales, const std::byte* codes, std::int64_t blocks, const std::byte* x, float* c,
                        std::int64_t c_stride);
  /// Packs rows x (rows, k), `x_stride` apart, as a tile. A step with a value that is not finite gets a scale that is not.
  using PackRows = void (*)(const RowFormat& format, const float* x, std::int64_t x_stride, int rows, std::int64_t k, std::byte* tile);
  /// Packs `columns` rows of weights, of `blocks` blocks each; a null row counts as zeros.
  using PackPanel = void (*)(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);

  /// The same of many rows at once, with the same bits, for a panel of which `columns` are wanted: `rows.count` of x, a multiple of
  /// most_rows, packed in whole tiles.
  struct ManyRows {
    const std::byte* x = nullptr;
    std::int64_t count = 0;
    const std::int64_t* order = nullptr;  // row i goes to row order[i] of c; null: to row i
    float* c = nullptr;
    std::int64_t c_stride = 0;
  };
  using Many = void (*)(const std::byte* scales, const std::byte* codes, std::int64_t blocks, const ManyRows& rows, int columns);
  static constexpr std::int64_t many_rows = 32;  // that are worth it

  std::string_view type;  // of the blocks: BlockFormat::name
  RowFormat rows;
  std::int64_t block_values = 0, scale_bytes = 0, code_bytes = 0;  // of a block of all columns of a panel
  PackRows pack_rows = nullptr;
  PackPanel pack_panel = nullptr;
  Tile tiles[most_rows + 1] = {};  // by rows
  /// Few rows with `panels_beside` panels that follow each other: scales and codes are those of the first, and C (rows, panels_beside *
  /// columns). Null: one at a time.
  static constexpr int rows_beside = 2;
  static constexpr std::int64_t panels_beside = 8;
  Tile beside[rows_beside + 1] = {};  // by rows
  Many many = nullptr;                // null: as tiles

  constexpr std::int64_t codes_at(std::int64_t blocks) const { return (blocks * scale_bytes + 63) / 64 * 64; }
  constexpr std::int64_t panel_bytes(std::int64_t blocks) const { return codes_at(blocks) + blocks * code_bytes; }
};

/// The kernel for the type at that level; null for plain types.
const BlockKernel* block_kernel(std::string_view type, CpuLevel level);

}  // namespace rlx::cpu
