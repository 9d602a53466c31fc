#include "backends/cpu/quantised/block_dot.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t columns = BlockKernel::columns, most_rows = BlockKernel::most_rows;

/// Multiply-adds that are worth a thread of their own: a few microseconds.
constexpr std::int64_t worth_a_thread = 1 << 18;

std::int64_t grain_of(std::int64_t operations) { return std::max<std::int64_t>(1, worth_a_thread / std::max<std::int64_t>(1, operations)); }

std::int64_t packed_row_bytes(const BlockKernel& kernel, std::int64_t k) { return k / RowFormat::step * kernel.rows.row_bytes(); }

void pack_left(const BlockDotArgs& args, ThreadPool& pool) {
  const BlockKernel& kernel = args.weights->kernel();
  const std::int64_t k = args.weights->k(), row_bytes = packed_row_bytes(kernel, k), tiles = (args.m + most_rows - 1) / most_rows;
  constexpr std::int64_t operations_of_packing = 16;  // for one value, in multiply-adds of the kernels
  pool.parallel_for(tiles, grain_of(most_rows * k * operations_of_packing), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin * most_rows; row < std::min(args.m, end * most_rows); row += most_rows)
      kernel.pack_rows(kernel.rows, args.x + row * k, k, static_cast<int>(std::min(most_rows, args.m - row)), k,
                       args.workspace + row * row_bytes);
  });
}

/// All rows of x with one panel of weights.
void multiply_panel(const BlockDotArgs& args, std::int64_t panel) {
  const BlockPanels& weights = *args.weights;
  const BlockKernel& kernel = weights.kernel();
  const std::int64_t n = weights.n(), blocks = weights.blocks(), row_bytes = packed_row_bytes(kernel, weights.k());
  const std::int64_t width = std::min(columns, n - panel * columns);
  const std::byte *scales = weights.panel(panel), *codes = scales + kernel.codes_at(blocks);
  for (std::int64_t row = 0; row < args.m; row += most_rows) {
    const std::int64_t rows = std::min(most_rows, args.m - row);
    const auto tile = kernel.tiles[rows];
    const std::byte* const x = args.workspace + row * row_bytes;
    float* const c = args.c + row * n + panel * columns;
    if (width == columns) {
      tile(scales, codes, blocks, x, c, n);
      continue;
    }
    std::array<float, most_rows * columns> whole;
    tile(scales, codes, blocks, x, whole.data(), columns);
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(whole.data() + r * columns, width, c + r * n);
  }
}

}  // namespace

BlockPanels::BlockPanels(const BlockKernel& kernel, const std::byte* blocks, std::int64_t bytes_per_row, std::int64_t n, std::int64_t k,
                         ThreadPool& pool)
    : kernel_(&kernel), n_(n), k_(k) {
  const std::int64_t panel_bytes = kernel.panel_bytes(this->blocks());
  const auto bytes = checked_mul(panels(), panel_bytes);
  if (!bytes) fail("weights of {} rows of {} values: too large", n, k);
  buffer_ = AlignedBuffer(static_cast<std::size_t>(*bytes));
  pool.parallel_for(panels(), grain_of(columns * k), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      std::array<const std::byte*, columns> rows{};
      for (std::int64_t i = 0; i < std::min(columns, n - panel * columns); ++i)
        rows[static_cast<std::size_t>(i)] = blocks + (panel * columns + i) * bytes_per_row;
      std::byte* const to = buffer_.data() + panel * panel_bytes;
      kernel.pack_panel(rows.data(), this->blocks(), to, to + kernel.codes_at(this->blocks()));
    }
  });
}

std::size_t block_dot_workspace(const BlockKernel& kernel, std::int64_t m, std::int64_t k) {
  const auto bytes = checked_mul(m, packed_row_bytes(kernel, k));
  if (!bytes) fail("a product of {} rows of {} values: too large", m, k);
  return static_cast<std::size_t>(*bytes);
}

void block_dot(const BlockDotArgs& args, ThreadPool& pool) {
  if (args.m == 0 || args.weights->n() == 0) return;
  pack_left(args, pool);
  const std::int64_t operations = args.m * columns * args.weights->k();
  pool.parallel_for(args.weights->panels(), grain_of(operations), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t panel = begin; panel < end; ++panel) multiply_panel(args, panel);
  });
}

}  // namespace rlx::cpu
