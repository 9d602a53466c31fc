#include "backends/cpu/gemm/winograd.h"

#include <algorithm>
#include <array>
#include <vector>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t factors = winograd_items;

/// How the tiles, of 2 x 2 results each, are shared out: by lines of them, and where those do not divide evenly also by columns.
struct WinogradPlan {
  std::int64_t tile_lines = 0, tiles_across = 0, line_blocks = 1, col_blocks = 1;
  std::int64_t most_tiles = 0;  // of a block
  std::int64_t row_stride = 0;  // of factors: not of a large power of two bytes, at which tiles would share the sets of a cache
  std::int64_t factor_elements = 0, product_elements = 0, worker_elements = 0;

  template <class T>
  WinogradPlan(const WinogradArgs<T>& args, int threads) {
    const MicroKernel<T>& kernel = args.weights->kernel();
    tile_lines = divide_up(args.height, 2), tiles_across = divide_up(args.width, 2);
    row_stride = args.channels + kernel.panel_cols / 2;
    const std::int64_t tile_bytes = factors * args.channels * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t in_cache = std::max<std::int64_t>(1, cpu_features().l2_bytes / 2 / tile_bytes);
    const std::int64_t tiles = std::min<std::int64_t>(in_cache, std::int64_t{4} * kernel.max_rows);
    line_blocks = divide_up(tile_lines, std::max<std::int64_t>(1, tiles / tiles_across));
    const bool even = args.images % threads == 0 || (tile_lines % line_blocks == 0 && args.images * line_blocks % threads == 0);
    if (!even) col_blocks = std::min<std::int64_t>(threads, args.weights->panels());
    most_tiles = divide_up(tile_lines, line_blocks) * tiles_across;
    factor_elements = elements({factors, most_tiles, row_stride});
    product_elements = elements({factors, most_tiles, kernel.panel_cols});
    worker_elements = factor_elements + product_elements + elements({4, tiles_across, kernel.panel_cols});
  }

  static std::int64_t elements(std::initializer_list<std::int64_t> sizes) {
    constexpr std::int64_t line = AlignedBuffer::cache_line;
    const auto count = checked_product(sizes);
    if (!count || *count > (std::int64_t{1} << 48)) fail("winograd: the blocks of a convolution take more memory than there is");
    return divide_up(*count, line) * line;
  }
};

template <class T>
class WinogradWorker {
 public:
  WinogradWorker(const WinogradArgs<T>& args, const WinogradPlan& plan, T* workspace)
      : args_(args),
        plan_(plan),
        kernel_(args.weights->kernel()),
        factors_(workspace),
        products_(factors_ + plan.factor_elements),
        results_(products_ + plan.product_elements) {}

  /// One block. Tasks count up over (column block, image, line block), so that a thread reads few columns of the weights.
  void run(std::int64_t task) {
    const std::int64_t blocks = args_.images * plan_.line_blocks, block = task % blocks;
    image_ = block / plan_.line_blocks;
    lines_ = even_part(plan_.tile_lines, plan_.line_blocks, block % plan_.line_blocks);
    transform_windows();
    const Range panels = even_part(args_.weights->panels(), plan_.col_blocks, task / blocks);
    for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
      multiply(panel);
      for (std::int64_t line = lines_.begin; line < lines_.end; ++line) finish(panel, line);
    }
  }

 private:
  std::int64_t tiles() const { return lines_.size() * plan_.tiles_across; }

  /// Where the four lines, or positions, of a window are. That beyond an image of odd size counts for results beyond it only: another is
  /// read.
  static std::array<std::int64_t, 4> window(std::int64_t tile, std::int64_t size, std::int64_t stride) {
    const std::int64_t first = 2 * tile * stride;
    return {first, first + stride, first + 2 * stride, first + (2 * tile + 1 < size ? 3 : 2) * stride};
  }

  void transform_windows() {
    T* to = factors_;
    const T* const image = args_.x + image_ * args_.image_stride;
    for (std::int64_t line = lines_.begin; line < lines_.end; ++line) {
      const auto lines = window(line, args_.height, args_.line_stride);
      for (std::int64_t tile = 0; tile < plan_.tiles_across; ++tile, to += plan_.row_stride) {
        const auto positions = window(tile, args_.width, args_.position_stride);
        kernel_.transform_window(image, lines.data(), positions.data(), args_.channels, to, tiles() * plan_.row_stride);
      }
    }
  }

  void multiply(std::int64_t panel) {
    const std::int64_t width = kernel_.panel_cols, count = tiles(), parts = divide_up(count, kernel_.max_rows);
    for (std::int64_t f = 0; f < factors; ++f)
      for (std::int64_t part = 0; part < parts; ++part) {
        const Range rows = even_part(count, parts, part);
        kernel_.rows_in_place[rows.size()](args_.channels, factors_ + (f * count + rows.begin) * plan_.row_stride, plan_.row_stride,
                                           nullptr, args_.weights->panel(f, panel), nullptr, products_ + (f * count + rows.begin) * width,
                                           width, width, false);
      }
  }

  /// The two lines of results of a line of tiles.
  void finish(std::int64_t panel, std::int64_t line) {
    const std::int64_t width = kernel_.panel_cols, across = plan_.tiles_across, col0 = panel * width;
    const T* const from = products_ + (line - lines_.begin) * across * width;
    for (std::int64_t tile = 0; tile < across; ++tile)
      kernel_.transform_products(from + tile * width, tiles() * width, results_ + 2 * tile * width, 2 * across * width);
    for (std::int64_t y = 2 * line; y < std::min(2 * line + 2, args_.height); ++y)
      args_.epilogue(args_.epilogue_context, results_ + (y - 2 * line) * 2 * across * width, width, image_, y * args_.width, args_.width,
                     col0, std::min(width, args_.columns - col0));
  }

  const WinogradArgs<T>& args_;
  const WinogradPlan& plan_;
  const MicroKernel<T>& kernel_;
  T* const factors_;   // (factor, tile, channel)
  T* const products_;  // (factor, tile, column of a panel)
  T* const results_;   // (line, position, column of a panel) of one line of tiles
  std::int64_t image_ = 0;
  Range lines_{};
};

/// G g G^T of one kernel, rounded once.
template <class T>
void transform_kernel(const WinogradKernels<T>& kernels, const T* w, T* to, std::int64_t distance) {
  const auto four = [](double a, double b, double c) { return std::array{a, (a + b + c) / 2, (a - b + c) / 2, c}; };
  std::array<std::array<double, 4>, 3> rows{};
  for (std::size_t j = 0; j < 3; ++j) {
    const T* const at = w + static_cast<std::int64_t>(j) * kernels.position_stride;
    rows[j] = four(at[0], at[kernels.line_stride], at[2 * kernels.line_stride]);
  }
  for (std::size_t i = 0; i < 4; ++i)
    for (const double factor : four(rows[0][i], rows[1][i], rows[2][i])) *to = static_cast<T>(factor), to += distance;
}

}  // namespace

bool worth_winograd(std::int64_t height, std::int64_t width, std::int64_t channels, std::int64_t columns) {
  constexpr std::int64_t fewest_channels = 32, fewest_lines = 4;  // else transforms take longer than they save
  return channels >= fewest_channels && columns >= fewest_channels && height >= fewest_lines && width >= fewest_lines;
}

template <class T>
void pack_winograd(const WinogradKernels<T>& kernels, PackedB<T>& packed, ThreadPool& pool) {
  const std::int64_t channels = packed.k(), columns = packed.n();
  const auto count = checked_product(std::array{factors, channels, columns});
  if (!count) fail("winograd: {} channels and {} columns take more memory than 64 bits count", channels, columns);
  std::vector<T> all(static_cast<std::size_t>(*count));
  pool.parallel_for(channels, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t channel = begin; channel < end; ++channel)
      for (std::int64_t column = 0; column < columns; ++column)
        transform_kernel(kernels, kernels.w + channel * kernels.channel_stride + column * kernels.column_stride,
                         all.data() + channel * columns + column, channels * columns);
  });
  packed.pack({all.data(), columns, 1, channels * columns}, pool);
}

template <class T>
std::size_t winograd_workspace(const WinogradArgs<T>& args, int threads) {
  return static_cast<std::size_t>(WinogradPlan(args, threads).worker_elements) * sizeof(T) * static_cast<std::size_t>(threads);
}

template <class T>
void winograd(const WinogradArgs<T>& args, ThreadPool& pool) {
  const WinogradPlan plan(args, pool.size());
  pool.parallel_for(args.images * plan.line_blocks * plan.col_blocks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    WinogradWorker<T> own(args, plan, reinterpret_cast<T*>(args.workspace) + worker * plan.worker_elements);
    for (std::int64_t task = begin; task < end; ++task) own.run(task);
  });
}

template void pack_winograd(const WinogradKernels<float>&, PackedB<float>&, ThreadPool&);
template std::size_t winograd_workspace(const WinogradArgs<float>&, int);
template void winograd(const WinogradArgs<float>&, ThreadPool&);

}  // namespace rlx::cpu
