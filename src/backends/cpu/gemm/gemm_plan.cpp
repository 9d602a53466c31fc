#include "backends/cpu/gemm/gemm_plan.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

/// The bytes of an array of U as whole cache lines, so that what follows it is aligned.
template <class U, class T>
std::size_t line_bytes(const GemmArgs<T>& args, std::initializer_list<std::int64_t> sizes) {
  constexpr std::int64_t line = AlignedBuffer::cache_line;
  const auto elements = checked_product(sizes);
  const auto bytes = elements ? checked_mul<std::int64_t>(*elements, sizeof(U)) : std::nullopt;
  const auto padded = bytes ? checked_add(*bytes, line - 1) : std::nullopt;
  if (!padded) fail("gemm: batch {}, m {}, n {}, k {} take more bytes than 64 bits count", args.batch, args.m, args.n, args.k);
  return static_cast<std::size_t>(*padded / line * line);
}

template <class T>
bool repeats_one_item(const Matrix<T>& b, std::int64_t batch) {
  if (!b.batch_offsets) return b.batch_stride == 0;
  return std::all_of(b.batch_offsets, b.batch_offsets + batch, [&](std::int64_t offset) { return offset == b.batch_offsets[0]; });
}

template <class T>
BSource choose_source(const GemmArgs<T>& args, std::int64_t b_items, std::size_t item_bytes, int threads) {
  if (args.packed_b) return BSource::packed;
  const bool fits = item_bytes <= static_cast<std::size_t>(cpu_features().l2_bytes / 2);
  return threads == 1 || (b_items >= 2 * threads && fits) ? BSource::per_worker : BSource::shared;
}

/// The stride of windows, where tiles of rows at one stride are at least half of the kernel's. Packing windows that overlap would copy
/// every element many times.
template <class T>
std::int64_t window_stride(const GemmArgs<T>& args, std::int64_t max_rows) {
  const std::int64_t stride = args.m > 1 ? args.a.row_offsets[1] - args.a.row_offsets[0] : 1;
  if (stride < 1) return 0;
  const std::int64_t rows = std::min<std::int64_t>(args.m, 512), first = next_tile(args.a.row_offsets, rows, stride, max_rows);
  std::int64_t tiles = 0;
  for (std::int64_t row = 0; row < rows; ++tiles) row += next_tile(args.a.row_offsets + row, rows - row, stride, max_rows);
  return rows >= tiles * max_rows / 2 && rows_fit_sets(stride * static_cast<std::int64_t>(sizeof(Left<T>)), first) ? stride : 0;
}

/// See Plan::in_place_stride.
template <class T>
std::int64_t in_place_stride(const GemmArgs<T>& args, const MicroKernel<T>& kernel) {
  if (args.compute_a || !kernel.rows_in_place[1] || args.k < Format<T>::group) return 0;
  if (args.a.row_offsets) return Format<T>::group == 1 ? window_stride(args, kernel.max_rows) : 0;
  const std::int64_t stride = args.m > 1 ? args.a.row_stride : 1, rows = std::min<std::int64_t>(args.m, kernel.max_rows);
  const bool fits = args.a.col_stride == 1 && stride > 0 && rows_fit_sets(stride * static_cast<std::int64_t>(sizeof(Left<T>)), rows);
  return fits ? stride : 0;
}

}  // namespace

bool rows_fit_sets(std::int64_t stride_bytes, std::int64_t rows) {
  constexpr std::int64_t line = AlignedBuffer::cache_line, sets = 64, ways = 8;
  std::array<std::int64_t, sets> lines{};
  for (std::int64_t row = 0, last = -1; row < rows; ++row) {
    const std::int64_t at = row * stride_bytes / line;
    if (at != last && ++lines[static_cast<std::size_t>(at % sets)] > ways) return false;
    last = at;
  }
  return true;
}

std::int64_t next_tile(const std::int64_t* offsets, std::int64_t rows, std::int64_t stride, std::int64_t most) {
  std::int64_t run = 1;
  while (run < rows && offsets[run] == offsets[run - 1] + stride) ++run;
  return divide_up(run, divide_up(run, most));
}

template <class T>
ProductSize product_size(const GemmArgs<T>& args) {
  const MicroKernel<T>& kernel = args.packed_b ? args.packed_b->kernel() : *args.kernel;
  return {args.batch,
          args.m,
          kernel.units(args.k),
          divide_up(args.n, kernel.panel_cols),
          kernel.panel_cols,
          kernel.max_rows,
          kernel.row_step,
          kernel.depth_step,
          kernel.longest_pass,
          sizeof(Packed<Left<T>>),
          args.epilogue && args.epilogue_by_columns};
}

template <class T>
Plan<T> make_plan(const GemmArgs<T>& args, int threads) {
  Plan<T> plan;
  plan.kernel = args.packed_b ? &args.packed_b->kernel() : args.kernel;
  const MicroKernel<T>& kernel = *plan.kernel;
  const std::int64_t panel_cols = kernel.panel_cols;
  plan.panels = divide_up(args.n, panel_cols);
  const std::size_t c_bytes = line_bytes<Sum<T>>(args, {args.batch, args.m, plan.panels, panel_cols});  // and so the number of tasks fits
  plan.fetches_c = !args.epilogue && c_bytes / static_cast<std::size_t>(threads) > static_cast<std::size_t>(cpu_features().l2_bytes);
  plan.units = kernel.units(args.k);
  plan.cut = args.choice ? args.choice->cut : choose_blocking(product_size(args), cpu_features().l2_bytes, threads);

  plan.b_items = repeats_one_item(args.b, args.batch) ? 1 : args.batch;
  const std::size_t item_bytes = line_bytes<Packed<T>>(args, {plan.panels, plan.units + kernel.raised, panel_cols});
  plan.panel_units = (plan.units + kernel.raised) * panel_cols;
  plan.b_source = choose_source(args, plan.b_items, item_bytes, threads);
  if (plan.b_source == BSource::shared)
    plan.shared_bytes = line_bytes<Packed<T>>(args, {plan.b_items, plan.panels, plan.units + kernel.raised, panel_cols});
  if (plan.b_source == BSource::per_worker) plan.b_bytes = item_bytes;

  const std::int64_t rows = divide_up(count_steps(args.m, kernel.row_step), plan.cut.row_blocks) * kernel.row_step;
  plan.in_place_stride = in_place_stride(args, kernel);
  if (args.compute_a) {
    constexpr std::int64_t line = AlignedBuffer::cache_line / sizeof(Left<T>);
    plan.computed_stride = divide_up(args.a_by_columns ? rows : plan.cut.depth, line) * line;
    if (!args.a_by_columns && !rows_fit_sets(plan.computed_stride * static_cast<std::int64_t>(sizeof(Left<T>)), kernel.max_rows))
      plan.computed_stride += line;
    if (!args.a_by_columns) plan.in_place_stride = plan.computed_stride;
    plan.computed_bytes = line_bytes<Left<T>>(args, {args.a_by_columns ? plan.cut.depth : rows, plan.computed_stride});
  }
  plan.a_bytes = plan.in_place_stride > 0 ? 0 : line_bytes<Packed<Left<T>>>(args, {rows, plan.cut.depth});
  plan.block_bytes = args.epilogue ? line_bytes<Sum<T>>(args, {rows, divide_up(plan.panels, plan.cut.col_blocks), panel_cols}) : 0;
  plan.edge_bytes = line_bytes<Sum<T>>(args, {args.epilogue_by_columns ? rows : kernel.max_rows, panel_cols});
  plan.worker_bytes = plan.b_bytes + plan.a_bytes + plan.computed_bytes + plan.block_bytes + plan.edge_bytes;
  return plan;
}

template ProductSize product_size(const GemmArgs<float>&);
template ProductSize product_size(const GemmArgs<double>&);
template ProductSize product_size(const GemmArgs<Bf16>&);
template ProductSize product_size(const GemmArgs<F16>&);
template ProductSize product_size(const GemmArgs<Bf16Weight>&);
template ProductSize product_size(const GemmArgs<std::int8_t>&);
template Plan<float> make_plan(const GemmArgs<float>&, int);
template Plan<double> make_plan(const GemmArgs<double>&, int);
template Plan<Bf16> make_plan(const GemmArgs<Bf16>&, int);
template Plan<F16> make_plan(const GemmArgs<F16>&, int);
template Plan<Bf16Weight> make_plan(const GemmArgs<Bf16Weight>&, int);
template Plan<std::int8_t> make_plan(const GemmArgs<std::int8_t>&, int);

}  // namespace rlx::cpu
