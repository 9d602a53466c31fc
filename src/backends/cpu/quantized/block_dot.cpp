#include "backends/cpu/quantized/block_dot.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "base/checked.h"
#include "base/files/mapped_file.h"
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

constexpr std::int64_t line = AlignedBuffer::cache_line;

std::int64_t depth_of(const BlockDotArgs& args) { return args.products.front().weights->k(); }

/// The first product with a kernel that packs rows as that of product i does: both read the same packed rows.
std::size_t packed_like(const BlockDotArgs& args, std::size_t i) {
  const auto format = [](const BlockProduct& product) { return product.weights->kernel().rows; };
  std::size_t first = 0;
  while (first < i && (i == args.products.size() || !(format(args.products[first]) == format(args.products[i])))) ++first;
  return first;
}

/// Where the packed rows of product i begin in the workspace; behind those of the last one, for each worker, is room for the rows of a tile
/// where those lie apart.
std::int64_t packed_at(const BlockDotArgs& args, std::size_t i) {
  std::int64_t at = 0;
  for (std::size_t before = 0; before < packed_like(args, i); ++before)
    if (packed_like(args, before) == before)
      at += (args.rows.rows() * packed_row_bytes(args.products[before].weights->kernel(), depth_of(args)) + line - 1) / line * line;
  return at;
}

void pack_left(const BlockDotArgs& args, std::size_t product, ThreadPool& pool) {
  const BlockKernel& kernel = args.products[product].weights->kernel();
  const std::int64_t k = depth_of(args), row_bytes = packed_row_bytes(kernel, k);
  std::byte* const packed = args.workspace + packed_at(args, product);
  auto* const scratch = reinterpret_cast<float*>(args.workspace + packed_at(args, args.products.size()));
  const std::vector<RowTile> tiles = tiles_of(args.rows, most_rows);
  constexpr std::int64_t operations_of_packing = 16;  // for one value, in multiply-adds of the kernels
  pool.parallel_for(std::ssize(tiles), grain_of(most_rows * k * operations_of_packing),
                    [&](std::int64_t begin, std::int64_t end, int worker) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        const RowTile& tile = tiles[static_cast<std::size_t>(i)];
                        const float* const x = args.rows.gathered(args.x, k, tile.begin, tile.count, scratch + worker * most_rows * k);
                        kernel.pack_rows(kernel.rows, x, k, static_cast<int>(tile.count), k, packed + tile.begin * row_bytes);
                      }
                    });
}

/// A group of rows with one matrix of a product, of whose panels the first is number `first` among those of the whole loop.
struct Part {
  BlockProduct product;
  RowGroups::Group group;
  const std::byte* x = nullptr;  // the packed rows of all groups
  std::int64_t first = 0;
};

/// The matrices of all products, one after the other: a thread's part of them are few long streams.
std::vector<Part> parts_of(const BlockDotArgs& args) {
  std::vector<Part> parts;
  parts.reserve(args.products.size() * args.rows.groups.size());
  std::int64_t first = 0;
  for (std::size_t i = 0; i < args.products.size(); ++i)
    for (const RowGroups::Group& group : args.rows.groups) {
      parts.push_back({args.products[i], group, args.workspace + packed_at(args, i), first});
      first += args.products[i].weights->panels();
    }
  return parts;
}

/// Some panels of one matrix.
struct PanelRange {
  std::int64_t begin = 0, end = 0;
};

/// A tile of rows of a group with one panel of their weights.
void multiply_tile(const RowGroups& rows, const Part& part, const RowTile& of, std::int64_t panel) {
  const BlockPanels& weights = *part.product.weights;
  const BlockKernel& kernel = weights.kernel();
  const std::int64_t n = weights.n(), blocks = weights.blocks();
  const std::int64_t width = std::min(columns, n - panel * columns);
  const std::byte *scales = weights.panel(part.group.matrix, panel), *codes = scales + kernel.codes_at(blocks);
  const auto tile = kernel.tiles[of.count];
  const std::byte* const x = part.x + of.begin * packed_row_bytes(kernel, weights.k());
  float* const c = part.product.c + panel * columns;
  if (width == columns && rows.order.empty()) return tile(scales, codes, blocks, x, c + of.begin * n, n);
  std::array<float, most_rows * columns> whole;
  tile(scales, codes, blocks, x, whole.data(), columns);
  for (std::int64_t r = 0; r < of.count; ++r) std::copy_n(whole.data() + r * columns, width, c + rows.row(of.begin + r) * n);
}

/// A tile of rows of a group with panels of their weights one after the other, or some at a time where the kernel takes them so.
void multiply_tiles(const RowGroups& rows, const Part& part, const RowTile& of, PanelRange panels) {
  constexpr std::int64_t beside = BlockKernel::panels_beside;
  const BlockPanels& weights = *part.product.weights;
  const BlockKernel& kernel = weights.kernel();
  std::int64_t panel = panels.begin;
  const std::byte* const x = part.x + of.begin * packed_row_bytes(kernel, weights.k());
  const std::int64_t whole = std::min(panels.end, weights.n() / columns);
  const bool adjacent = of.count == 1 || rows.order.empty();
  const auto tile = of.count <= BlockKernel::rows_beside && adjacent ? kernel.beside[of.count] : nullptr;
  for (; tile && panel + beside <= whole; panel += beside) {
    const std::byte* const scales = weights.panel(part.group.matrix, panel);
    float* const c = part.product.c + rows.row(of.begin) * weights.n() + panel * columns;
    tile(scales, scales + kernel.codes_at(weights.blocks()), weights.blocks(), x, c, weights.n());
  }
  for (; panel < panels.end; ++panel) multiply_tile(rows, part, of, panel);
}

/// Those rows of a group that fill tiles with some panels of their weights, one panel after the other, where a kernel takes many at once.
/// Returns how many rows that were.
std::int64_t multiply_many(const RowGroups& rows, const Part& part, PanelRange panels) {
  const BlockPanels& weights = *part.product.weights;
  const RowGroups::Group& group = part.group;
  const BlockKernel& kernel = weights.kernel();
  if (!kernel.many || group.count < BlockKernel::many_rows) return 0;
  const std::int64_t n = weights.n(), blocks = weights.blocks(), count = group.count / most_rows * most_rows;
  const std::byte* const x = part.x + group.begin * packed_row_bytes(kernel, weights.k());
  const std::int64_t* const order = rows.order.empty() ? nullptr : rows.order.data() + group.begin;
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const std::byte* const scales = weights.panel(group.matrix, panel);
    float* const c = part.product.c + panel * columns + (order ? 0 : group.begin * n);
    const auto width = static_cast<int>(std::min(columns, n - panel * columns));
    kernel.many(scales, scales + kernel.codes_at(blocks), blocks, {x, count, order, c, n}, width);
  }
  return count;
}

/// Panels that stay in the second-level cache.
std::int64_t panels_at_a_time(const BlockPanels& weights) { return std::max<std::int64_t>(1, cached_panels / weights.panel_bytes()); }

/// The rows of a group with some panels of their weights: as many panels at a time as stay in the second-level cache, each tile of rows,
/// which stays in the first, with all of them; a single tile with all panels.
void multiply_panels(const RowGroups& rows, const Part& part, PanelRange panels) {
  const std::int64_t begin = part.group.begin + multiply_many(rows, part, panels), end = part.group.begin + part.group.count;
  const std::int64_t at_a_time = end - begin <= most_rows ? panels.end - panels.begin : panels_at_a_time(*part.product.weights);
  for (std::int64_t first = panels.begin; first < panels.end; first += at_a_time)
    for (std::int64_t row = begin; row < end; row += most_rows)
      multiply_tiles(rows, part, {row, std::min(most_rows, end - row)}, {first, std::min(first + at_a_time, panels.end)});
}

}  // namespace

std::int64_t BlockPanels::bytes_of(const BlockKernel& kernel, const BlockWeights& weights) {
  const std::int64_t panels = weights.n / columns + (weights.n % columns != 0);
  const std::int64_t sizes[] = {weights.matrices, panels, kernel.panel_bytes(weights.k / kernel.block_values)};
  const auto bytes = checked_product(sizes);
  if (!bytes) fail("weights of {} matrices of {} rows of {} values: too large", weights.matrices, weights.n, weights.k);
  return *bytes;
}

BlockPanels::BlockPanels(const BlockKernel& kernel, const BlockWeights& weights, std::byte* memory)
    : kernel_(&kernel), n_(weights.n), k_(weights.k), memory_(memory) {
  if (!memory) own_ = take_piece(static_cast<std::size_t>(bytes_of(kernel, weights))), memory_ = own_.get();
}

void BlockPanels::pack(const BlockWeights& weights, ThreadPool& pool) {
  pool.parallel_for(weights.matrices * panels(), grain_of(columns * k_), [&](std::int64_t begin, std::int64_t end, int) {
    const std::int64_t at_a_time = std::max<std::int64_t>(1, read_at_a_time / (columns * weights.row_bytes));
    for (std::int64_t first = begin; first < end; first += at_a_time) pack_some(weights, first, std::min(end, first + at_a_time));
  });
}

/// The panels from `begin` to `end` of all matrices. The pages of a file that they come from are given back, or a large matrix would be in
/// memory twice.
void BlockPanels::pack_some(const BlockWeights& weights, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t matrix = i / panels(), column = i % panels() * columns;
    std::array<const std::byte*, columns> rows{};
    for (std::int64_t r = 0; r < std::min(columns, n_ - column); ++r) rows[static_cast<std::size_t>(r)] = weights.row(matrix, column + r);
    std::byte* const to = memory_ + i * panel_bytes();
    kernel_->pack_panel(rows.data(), blocks(), to, to + kernel_->codes_at(blocks()));
  }
  const std::byte *first = weights.row(begin / panels(), begin % panels() * columns),
                  *last = weights.row(end / panels(), end % panels() * columns);
  release_mapped_pages({first, last});
}

std::size_t block_dot_workspace(const BlockDotArgs& args, int threads) {
  const std::int64_t m = args.rows.rows(), k = depth_of(args);
  const std::int64_t gathered[] = {args.rows.order.empty() ? 0 : threads, most_rows, k, std::int64_t{sizeof(float)}};
  auto bytes = checked_product(gathered);
  for (std::size_t i = 0; i < args.products.size() && bytes; ++i) {
    if (packed_like(args, i) < i) continue;
    const auto packed = checked_mul(m, packed_row_bytes(args.products[i].weights->kernel(), k));
    const auto aligned = packed ? checked_add(*packed, line - 1) : std::nullopt;
    bytes = aligned ? checked_add(*bytes, *aligned) : std::nullopt;
  }
  if (!bytes) fail("a product of {} rows of {} values: too large", m, k);
  return static_cast<std::size_t>(*bytes);
}

void block_dot(const BlockDotArgs& args, ThreadPool& pool) {
  const std::int64_t m = args.rows.rows();
  if (m == 0) return;
  for (std::size_t i = 0; i < args.products.size(); ++i)
    if (packed_like(args, i) == i) pack_left(args, i, pool);
  const std::vector<Part> parts = parts_of(args);
  const std::int64_t panels = parts.back().first + parts.back().product.weights->panels();
  const std::int64_t operations = m / std::ssize(args.rows.groups) * columns * depth_of(args);
  // Memory is not as fast for all threads, and who waited for others has asked for the beginning of its part before: the last panels go to
  // who is free.
  const std::int64_t piece = m <= most_rows ? BlockKernel::panels_beside : panels_at_a_time(*args.products.front().weights);
  pool.parallel_pieces(panels, grain_of(operations), piece, [&](std::int64_t begin, std::int64_t end, int) {
    for (auto part = std::prev(std::ranges::upper_bound(parts, begin, {}, &Part::first)); part != parts.end() && part->first < end; ++part)
      multiply_panels(args.rows, *part,
                      {std::max<std::int64_t>(begin - part->first, 0), std::min(end - part->first, part->product.weights->panels())});
  });
}

}  // namespace rlx::cpu
