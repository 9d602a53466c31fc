#include "backends/cpu/quantised/block_dot.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t columns = BlockKernel::columns, most_rows = BlockKernel::most_rows;

/// Multiply-adds that are worth a thread of their own: a few microseconds.
constexpr std::int64_t worth_a_thread = 1 << 18;

std::int64_t grain_of(std::int64_t operations) { return std::max<std::int64_t>(1, worth_a_thread / std::max<std::int64_t>(1, operations)); }

std::int64_t packed_row_bytes(const BlockKernel& kernel, std::int64_t k) { return k / RowFormat::step * kernel.rows.row_bytes(); }

/// The packed rows of x; then for each worker room for the rows of a tile, where those lie apart.
struct BlockDotPlaces {
  BlockDotPlaces(const BlockDotArgs& args, int threads) {
    const std::int64_t m = args.rows.rows(), k = args.weights->k();
    const auto packed = checked_mul(m, packed_row_bytes(args.weights->kernel(), k)), aligned = checked_add(packed.value_or(0), line - 1);
    const std::int64_t sizes[] = {args.rows.order.empty() ? 0 : threads, most_rows, k, std::int64_t{sizeof(float)}};
    const auto gathered = checked_product(sizes), all = aligned && gathered ? checked_add(*aligned, *gathered) : std::nullopt;
    if (!packed || !all) fail("a product of {} rows of {} values: too large", m, k);
    rows = *aligned / line * line;
    bytes = *all;
  }
  static constexpr std::int64_t line = AlignedBuffer::cache_line;
  std::int64_t rows = 0, bytes = 0;
};

void pack_left(const BlockDotArgs& args, ThreadPool& pool) {
  const BlockKernel& kernel = args.weights->kernel();
  const std::int64_t k = args.weights->k(), row_bytes = packed_row_bytes(kernel, k);
  auto* const scratch = reinterpret_cast<float*>(args.workspace + BlockDotPlaces(args, pool.size()).rows);
  const std::vector<RowTile> tiles = tiles_of(args.rows, most_rows);
  constexpr std::int64_t operations_of_packing = 16;  // for one value, in multiply-adds of the kernels
  pool.parallel_for(std::ssize(tiles), grain_of(most_rows * k * operations_of_packing),
                    [&](std::int64_t begin, std::int64_t end, int worker) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        const RowTile& tile = tiles[static_cast<std::size_t>(i)];
                        const float* const x = args.rows.gathered(args.x, k, tile.begin, tile.count, scratch + worker * most_rows * k);
                        kernel.pack_rows(kernel.rows, x, k, static_cast<int>(tile.count), k, args.workspace + tile.begin * row_bytes);
                      }
                    });
}

/// The rows of a group with one panel of their weights.
void multiply_panel(const BlockDotArgs& args, const RowGroups::Group& group, std::int64_t panel) {
  const BlockPanels& weights = *args.weights;
  const BlockKernel& kernel = weights.kernel();
  const std::int64_t n = weights.n(), blocks = weights.blocks(), row_bytes = packed_row_bytes(kernel, weights.k());
  const std::int64_t width = std::min(columns, n - panel * columns);
  const std::byte *scales = weights.panel(group.matrix, panel), *codes = scales + kernel.codes_at(blocks);
  for (std::int64_t row = group.begin; row < group.begin + group.count; row += most_rows) {
    const std::int64_t rows = std::min(most_rows, group.begin + group.count - row);
    const auto tile = kernel.tiles[rows];
    const std::byte* const x = args.workspace + row * row_bytes;
    float* const c = args.c + panel * columns;
    if (width == columns && args.rows.order.empty()) {
      tile(scales, codes, blocks, x, c + row * n, n);
      continue;
    }
    std::array<float, most_rows * columns> whole;
    tile(scales, codes, blocks, x, whole.data(), columns);
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(whole.data() + r * columns, width, c + args.rows.row(row + r) * n);
  }
}

}  // namespace

BlockPanels::BlockPanels(const BlockKernel& kernel, const BlockWeights& weights, ThreadPool& pool)
    : kernel_(&kernel), n_(weights.n), k_(weights.k) {
  const std::int64_t panel_bytes = kernel.panel_bytes(blocks()), sizes[] = {weights.matrices, panels(), panel_bytes};
  const auto bytes = checked_product(sizes);
  if (!bytes) fail("weights of {} matrices of {} rows of {} values: too large", weights.matrices, n_, k_);
  buffer_ = AlignedBuffer(static_cast<std::size_t>(*bytes));
  pool.parallel_for(weights.matrices * panels(), grain_of(columns * k_), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t matrix = i / panels(), column = i % panels() * columns;
      std::array<const std::byte*, columns> rows{};
      for (std::int64_t r = 0; r < std::min(columns, n_ - column); ++r) rows[static_cast<std::size_t>(r)] = weights.row(matrix, column + r);
      std::byte* const to = buffer_.data() + i * panel_bytes;
      kernel.pack_panel(rows.data(), blocks(), to, to + kernel.codes_at(blocks()));
    }
  });
}

std::size_t block_dot_workspace(const BlockDotArgs& args, int threads) {
  return static_cast<std::size_t>(BlockDotPlaces(args, threads).bytes);
}

void block_dot(const BlockDotArgs& args, ThreadPool& pool) {
  const std::int64_t m = args.rows.rows(), groups = std::ssize(args.rows.groups);
  if (m == 0 || args.weights->n() == 0) return;
  pack_left(args, pool);
  const std::int64_t operations = m / groups * columns * args.weights->k();
  // The groups of one panel follow each other, so that each thread has its part of all of them.
  pool.parallel_for(args.weights->panels() * groups, grain_of(operations), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) multiply_panel(args, args.rows.groups[static_cast<std::size_t>(i % groups)], i / groups);
  });
}

}  // namespace rlx::cpu
