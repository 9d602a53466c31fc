#include "backends/cpu/quantised/block_dot.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "base/checked.h"
#include "base/mapped_file.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t columns = BlockKernel::columns, most_rows = BlockKernel::most_rows;

/// Bytes of panels that one thread keeps in its second-level cache, beside the rows that come and go.
constexpr std::int64_t cached_panels = 256 << 10;

/// Bytes of a file that are packed before its pages are given back.
constexpr std::int64_t read_at_a_time = 4 << 20;

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

/// Some panels of one matrix.
struct PanelRange {
  std::int64_t begin = 0, end = 0;
};

/// A tile of rows of a group with one panel of their weights.
void multiply_tile(const BlockDotArgs& args, const RowGroups::Group& group, const RowTile& of, std::int64_t panel) {
  const BlockPanels& weights = *args.weights;
  const BlockKernel& kernel = weights.kernel();
  const std::int64_t n = weights.n(), blocks = weights.blocks();
  const std::int64_t width = std::min(columns, n - panel * columns);
  const std::byte *scales = weights.panel(group.matrix, panel), *codes = scales + kernel.codes_at(blocks);
  const auto tile = kernel.tiles[of.count];
  const std::byte* const x = args.workspace + of.begin * packed_row_bytes(kernel, weights.k());
  float* const c = args.c + panel * columns;
  if (width == columns && args.rows.order.empty()) return tile(scales, codes, blocks, x, c + of.begin * n, n);
  std::array<float, most_rows * columns> whole;
  tile(scales, codes, blocks, x, whole.data(), columns);
  for (std::int64_t r = 0; r < of.count; ++r) std::copy_n(whole.data() + r * columns, width, c + args.rows.row(of.begin + r) * n);
}

/// Those rows of a group that fill tiles with some panels of their weights, one panel after the other, where a kernel takes many at once.
/// Returns how many rows that were.
std::int64_t multiply_many(const BlockDotArgs& args, const RowGroups::Group& group, PanelRange panels) {
  const BlockPanels& weights = *args.weights;
  const BlockKernel& kernel = weights.kernel();
  if (!kernel.many || group.count < BlockKernel::many_rows) return 0;
  const std::int64_t n = weights.n(), blocks = weights.blocks(), count = group.count / most_rows * most_rows;
  const std::byte* const x = args.workspace + group.begin * packed_row_bytes(kernel, weights.k());
  const std::int64_t* const order = args.rows.order.empty() ? nullptr : args.rows.order.data() + group.begin;
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const std::byte* const scales = weights.panel(group.matrix, panel);
    float* const c = args.c + panel * columns + (order ? 0 : group.begin * n);
    const auto width = static_cast<int>(std::min(columns, n - panel * columns));
    kernel.many(scales, scales + kernel.codes_at(blocks), blocks, {x, count, order, c, n}, width);
  }
  return count;
}

/// Panels that stay in the second-level cache.
std::int64_t panels_at_a_time(const BlockPanels& weights) { return std::max<std::int64_t>(1, cached_panels / weights.panel_bytes()); }

/// The rows of a group with some panels of their weights: as many panels at a time as stay in the second-level cache, each tile of rows,
/// which stays in the first, with all of them.
void multiply_panels(const BlockDotArgs& args, const RowGroups::Group& group, PanelRange panels) {
  const std::int64_t at_a_time = panels_at_a_time(*args.weights);
  const std::int64_t begin = group.begin + multiply_many(args, group, panels), end = group.begin + group.count;
  for (std::int64_t first = panels.begin; first < panels.end; first += at_a_time)
    for (std::int64_t row = begin; row < end; row += most_rows)
      for (std::int64_t panel = first; panel < std::min(first + at_a_time, panels.end); ++panel)
        multiply_tile(args, group, {row, std::min(most_rows, end - row)}, panel);
}

/// Of all pairs of a panel and a group, numbered panel after panel, those from `begin` to `end`: the panels of one group.
PanelRange panels_of_group(std::int64_t group, std::int64_t groups, std::int64_t begin, std::int64_t end) {
  const auto first_from = [&](std::int64_t pair) { return (std::max<std::int64_t>(0, pair - group) + groups - 1) / groups; };
  return {first_from(begin), first_from(end)};
}

}  // namespace

BlockPanels::BlockPanels(const BlockKernel& kernel, const BlockWeights& weights, ThreadPool& pool)
    : kernel_(&kernel), matrices_(weights.matrices), n_(weights.n), k_(weights.k) {
  const std::int64_t sizes[] = {weights.matrices, panels(), panel_bytes()};
  const auto bytes = checked_product(sizes);
  if (!bytes) fail("weights of {} matrices of {} rows of {} values: too large", weights.matrices, n_, k_);
  buffer_ = take_piece(static_cast<std::size_t>(*bytes));
  // Each worker has the same part of every matrix, as in products: memory belongs to the node whose thread touches it first.
  pool.parallel_for(panels(), grain_of(weights.matrices * columns * k_), [&](std::int64_t begin, std::int64_t end, int) {
    const std::int64_t at_a_time = std::max<std::int64_t>(1, read_at_a_time / (columns * weights.row_bytes));
    for (std::int64_t matrix = 0; matrix < weights.matrices; ++matrix)
      for (std::int64_t first = begin; first < end; first += at_a_time) pack(weights, matrix, first, std::min(end, first + at_a_time));
  });
}

/// The panels of a matrix from `begin` to `end`. The pages of a file that they come from are given back, or a large matrix would be in
/// memory twice.
void BlockPanels::pack(const BlockWeights& weights, std::int64_t matrix, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t column = i * columns;
    std::array<const std::byte*, columns> rows{};
    for (std::int64_t r = 0; r < std::min(columns, n_ - column); ++r) rows[static_cast<std::size_t>(r)] = weights.row(matrix, column + r);
    std::byte* const to = buffer_.get() + (matrix * panels() + i) * panel_bytes();
    kernel_->pack_panel(rows.data(), blocks(), to, to + kernel_->codes_at(blocks()));
  }
  release_mapped_pages({weights.row(matrix, begin * columns), weights.row(matrix, std::min(n_, end * columns))});
}

std::size_t block_dot_workspace(const BlockDotArgs& args, int threads) {
  return static_cast<std::size_t>(BlockDotPlaces(args, threads).bytes);
}

void block_dot(const BlockDotArgs& args, ThreadPool& pool) {
  const std::int64_t m = args.rows.rows(), groups = std::ssize(args.rows.groups);
  if (m == 0 || args.weights->n() == 0) return;
  if (!args.is_packed) pack_left(args, pool);
  const std::int64_t operations = m / groups * columns * args.weights->k();
  // The groups of one panel follow each other, so that each thread has its part of all of them. Memory is not as fast for all threads, and
  // who waited for others has asked for the beginning of its part before: where memory binds, the last panels go to who is free.
  // Groups are not cut: each thread reads its panels of one after the other.
  const std::int64_t pairs = args.weights->panels() * groups;
  const std::int64_t piece = groups > 1 ? pairs : m <= most_rows ? 1 : panels_at_a_time(*args.weights);
  pool.parallel_pieces(pairs, grain_of(operations), piece, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t group = 0; group < groups; ++group)
      multiply_panels(args, args.rows.groups[static_cast<std::size_t>(group)], panels_of_group(group, groups, begin, end));
  });
}

}  // namespace rlx::cpu
