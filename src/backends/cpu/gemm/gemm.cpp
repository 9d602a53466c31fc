#include "backends/cpu/gemm/gemm.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/gemm/few_columns.h"
#include "backends/cpu/gemm/gemm_plan.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/gemm/transposed.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

template <class T>
void check_sizes(const GemmArgs<T>& args) {
  if (args.batch < 0 || args.m < 0 || args.n < 0 || args.k < 0) {
    fail("gemm: batch {}, m {}, n {}, k {} (allowed: 0 and more)", args.batch, args.m, args.n, args.k);
  }
}

template <class T>
void check_matrices(const GemmArgs<T>& args) {
  if (!args.epilogue && !args.c) fail("gemm: neither C nor an epilogue is given");
  if (!std::is_same_v<Left<T>, Packed<Left<T>>> && args.compute_a)
    fail_internal("gemm: A of narrow elements is packed by the product itself");
  if (args.k > 0 && !args.compute_a && !args.a.data) fail("gemm: neither A nor a function that computes it is given");
  if (!args.packed_b) {
    if (args.k > 0 && !args.b.data) fail("gemm: neither B nor a packed B is given");
    return;
  }
  const PackedB<T>& b = *args.packed_b;
  if (b.k() != args.k || b.n() != args.n || (b.batch() != 1 && b.batch() != args.batch)) {
    fail("gemm: B is packed as batch {}, k {}, n {} (allowed: batch 1 or {}, k {}, n {})", b.batch(), b.k(), b.n(), args.batch, args.k,
         args.n);
  }
}

template <class T>
void pack_panel_of_b(const GemmArgs<T>& args, const Plan<T>& plan, std::int64_t item, std::int64_t panel, Packed<T>* to) {
  const std::int64_t width = plan.kernel->panel_cols, col0 = panel * width;
  const Strided<T> source = args.k == 0 ? Strided<T>{} : columns_of(args.b, item, col0);
  pack_b_panel(source, std::min(width, args.n - col0), args.k, *plan.kernel, to);
}

template <class S>
void copy_rows(const S* from, std::int64_t from_stride, S* to, std::int64_t to_stride, std::int64_t rows, std::int64_t cols) {
  for (; rows > 0; --rows, from += from_stride, to += to_stride) std::copy_n(from, cols, to);
}

/// One worker's part of a product: runs tasks one after the other and keeps what the next task can use again.
template <class T>
class Worker {
 public:
  Worker(const GemmArgs<T>& args, const Plan<T>& plan, std::byte* workspace, int worker) : args_(args), plan_(plan), kernel_(*plan.kernel) {
    shared_b_ = reinterpret_cast<const Packed<T>*>(workspace);
    std::byte* own = workspace + plan.shared_bytes + static_cast<std::size_t>(worker) * plan.worker_bytes;
    own_b_ = reinterpret_cast<Packed<T>*>(own);
    a_ = reinterpret_cast<Packed<Left<T>>*>(own + plan.b_bytes);
    own += plan.b_bytes + plan.a_bytes;
    computed_ = reinterpret_cast<Left<T>*>(own);
    block_ = reinterpret_cast<Sum<T>*>(own + plan.computed_bytes);
    edge_ = reinterpret_cast<Sum<T>*>(own + plan.computed_bytes + plan.block_bytes);
  }

  /// Computes one block of C. Tasks count up over (batch, row block, column block).
  void run(std::int64_t task) {
    const std::int64_t row_block = task / plan_.cut.col_blocks % plan_.cut.row_blocks;
    batch_ = task / plan_.cut.col_blocks / plan_.cut.row_blocks;
    rows_ = even_part(args_.m, plan_.cut.row_blocks, row_block, kernel_.row_step);
    panels_ = EvenParts(plan_.panels, plan_.cut.col_blocks)[task % plan_.cut.col_blocks];
    row_panels_ = divide_up(rows_.size(), kernel_.max_rows);
    row_parts_ = EvenParts(count_steps(rows_.size(), kernel_.row_step), row_panels_);
    const Packed<T>* b = item_of_b();
    Sum<T>* const c = c_of_block();
    for (std::int64_t unit0 = 0; unit0 < plan_.units || unit0 == 0; unit0 += plan_.cut.depth) {
      const std::int64_t units = std::min(plan_.cut.depth, plan_.units - unit0);
      if (plan_.in_place_stride == 0 || args_.compute_a) pack_a(unit0, units);
      multiply(b, unit0, units, c);
    }
    if (args_.epilogue) hand_over(c);
  }

 private:
  const Packed<T>* item_of_b() {
    if (plan_.b_source == BSource::packed) return args_.packed_b->panel(args_.packed_b->batch() == 1 ? 0 : batch_, 0);
    const std::int64_t item = plan_.b_items == 1 ? 0 : batch_;
    if (plan_.b_source == BSource::shared) return shared_b_ + item * plan_.panels * plan_.panel_units;
    if (own_b_item_ != item) {
      for (std::int64_t p = 0; p < plan_.panels; ++p) pack_panel_of_b(args_, plan_, item, p, own_b_ + p * plan_.panel_units);
      own_b_item_ = item;
    }
    return own_b_;
  }

  /// Rows of the block that a tile computes, and with those that pad it to whole steps.
  struct RowPanel {
    std::int64_t begin, count, whole;
  };

  void hand_over(Sum<T>* block) {
    const std::int64_t width = kernel_.panel_cols, rows = rows_.size();
    const auto finish = [&](Sum<T>* tile, std::int64_t stride, Range panels) {
      const std::int64_t col0 = panels.begin * width, cols = std::min(panels.end * width, args_.n) - col0;
      args_.epilogue(args_.epilogue_context, tile, stride, batch_, rows_.begin, rows, col0, cols);
    };
    if (!args_.epilogue_by_columns) return finish(block, c_stride_, panels_);
    for (std::int64_t p = panels_.begin; p < panels_.end; ++p, block += width) {  // a panel at a time stays in L1
      pack_panel<Sum<T>>({block, c_stride_, 1}, rows, width, edge_, rows);
      finish(edge_, rows, {p, p + 1});
    }
  }

  /// Where the block is summed up, also between passes: its place in C, or scratch memory for an epilogue.
  Sum<T>* c_of_block() {
    if (args_.epilogue) {
      c_stride_ = panels_.size() * kernel_.panel_cols;
      return block_;
    }
    c_stride_ = args_.c_row_stride;
    Sum<T>* item = args_.c + (args_.c_batch_offsets ? args_.c_batch_offsets[batch_] : batch_ * args_.c_batch_stride);
    return item + rows_.begin * c_stride_ + panels_.begin * kernel_.panel_cols;
  }

  void pack_a(std::int64_t unit0, std::int64_t units) {
    const bool whole = units == plan_.units;  // then the next block of columns finds it here
    if (whole && a_batch_ == batch_ && a_row0_ == rows_.begin) return;
    a_batch_ = whole ? batch_ : -1;
    a_row0_ = rows_.begin;
    const std::int64_t k0 = unit0 * Format<T>::group, depth = std::min(units * Format<T>::group, args_.k - k0);
    if (args_.compute_a && depth > 0)
      args_.compute_a(args_.compute_a_context, computed_, plan_.computed_stride, batch_, rows_.begin, rows_.size(), k0, depth);
    if (plan_.in_place_stride > 0) return;
    if (depth > 0) for_each_row_panel([&](const RowPanel& rows) { pack_a_panel(rows, k0, depth, a_ + rows.begin * units); });
    if constexpr (std::is_same_v<T, std::int8_t>)
      if (kernel_.raised) raise(a_, rows_.size() * units);
  }

  void pack_a_panel(const RowPanel& rows, std::int64_t k0, std::int64_t depth, Packed<Left<T>>* panel) {
    const Matrix<Left<T>>& a = args_.a;
    const Strided<Left<T>> source =
        args_.compute_a
            ? Strided<Left<T>>{computed_ + rows.begin, 1, plan_.computed_stride}
            : Strided<Left<T>>{a.item(batch_), a.row_stride, a.col_stride, a.row_offsets, a.col_offsets}.at(rows_.begin + rows.begin, k0);
    if constexpr (!std::is_same_v<Left<T>, Packed<Left<T>>>)
      if (kernel_.depth_step > 1) return pack_blocks(source, rows.count, depth, panel, rows.whole, kernel_.depth_step);
    pack_panel(source, rows.count, depth, panel, rows.count);
  }

  /// Calls `visit(rows)` for the rows of each tile of the block.
  template <class Visit>
  void for_each_row_panel(const Visit& visit) const {
    const std::int64_t count = rows_.size();
    if (plan_.in_place_stride == 0 || !args_.a.row_offsets) {
      for (std::int64_t index = 0; index < row_panels_; ++index) {
        const Range steps = row_parts_[index];
        const std::int64_t begin = steps.begin * kernel_.row_step, whole = steps.size() * kernel_.row_step;
        visit(RowPanel{begin, std::min(whole, count - begin), whole});
      }
      return;
    }
    const std::int64_t* const offsets = args_.a.row_offsets + rows_.begin;
    for (std::int64_t row = 0, size = 0; row < count; row += size) {
      size = next_tile(offsets + row, count - row, plan_.in_place_stride, kernel_.max_rows);
      visit(RowPanel{row, size, size});
    }
  }

  void multiply(const Packed<T>* b, std::int64_t unit0, std::int64_t units, Sum<T>* c) {
    const std::int64_t width = kernel_.panel_cols, head = kernel_.raised ? width : 0;
    for (std::int64_t p = panels_.begin + multiply_one_row(b, unit0, units, c); p < panels_.end; ++p) {
      const Packed<T>* const panel = b + p * plan_.panel_units;
      const std::int64_t cols = std::min(width, args_.n - p * width);
      for_each_row_panel([&](const RowPanel& rows) {
        Sum<T>* const to = c + rows.begin * c_stride_ + (p - panels_.begin) * width;
        const Tile tile{units, rows, unit0, panel + head + unit0 * width, reinterpret_cast<const Sum<T>*>(panel)};
        if (plan_.fetches_c) fetch(to, rows.count, cols);
        // The last panel may be wider than C, the last tile taller; a scratch block has room for them.
        if (kernel_.stores_parts) multiply_tile(tile, to, c_stride_, cols);
        else if (args_.epilogue || (cols == width && rows.count == rows.whole)) multiply_tile(tile, to, c_stride_, width);
        else multiply_edge(tile, to, cols);
      });
    }
  }

  /// A row that is alone in its block, with as many panels as are taken side by side: their number.
  std::int64_t multiply_one_row(const Packed<T>* b, std::int64_t unit0, std::int64_t units, Sum<T>* c) {
    constexpr std::int64_t beside = MicroKernel<T>::panels_beside;
    const std::int64_t whole = std::min(panels_.end, args_.n / kernel_.panel_cols) - panels_.begin;
    if (!kernel_.beside || rows_.size() != 1 || plan_.in_place_stride == 0 || args_.a.col_offsets || whole < beside) return 0;
    const std::int64_t width = kernel_.panel_cols, done = whole / beside * beside;
    for (std::int64_t p = 0; p < done; p += beside)
      kernel_.beside(units, row_in_place(0, unit0), b + (panels_.begin + p) * plan_.panel_units + unit0 * width, plan_.panel_units,
                     c + p * width, unit0 > 0);
    return done;
  }

  /// Stores that miss would wait for each other.
  void fetch(const Sum<T>* c, std::int64_t rows, std::int64_t cols) const {
    constexpr std::int64_t line = AlignedBuffer::cache_line / sizeof(Sum<T>);
    for (std::int64_t row = 0; row < rows; ++row, c += c_stride_)
      for (std::int64_t col = 0; col < cols; col += line) __builtin_prefetch(c + col, 1);
  }

  struct Tile {
    std::int64_t units;
    const RowPanel& rows;
    std::int64_t unit0;
    const Packed<T>* b;
    const Sum<T>* start;
  };

  void multiply_tile(const Tile& tile, Sum<T>* c, std::int64_t c_stride, std::int64_t cols) {
    const bool accumulate = tile.unit0 > 0;
    if (const std::int64_t stride = plan_.in_place_stride; stride > 0) {
      const std::int64_t depth = std::min(tile.units * Format<T>::group, args_.k - tile.unit0 * Format<T>::group);
      return kernel_.rows_in_place[tile.rows.whole](depth, row_in_place(tile.rows.begin, tile.unit0), stride,
                                                    args_.a.col_offsets ? args_.a.col_offsets + tile.unit0 : nullptr, tile.b, tile.start, c,
                                                    c_stride, cols, accumulate);
    }
    kernel_.tiles[tile.rows.whole](tile.units, a_ + tile.rows.begin * tile.units, tile.b, tile.start, c, c_stride, cols, accumulate);
  }

  /// Where that row of the block begins, from that unit of depth on; or where the first unit of its table is counted from.
  const Left<T>* row_in_place(std::int64_t row, std::int64_t unit0) const {
    if (args_.compute_a) return computed_ + row * plan_.computed_stride;  // of these units
    const Matrix<Left<T>>& a = args_.a;
    const std::int64_t at = rows_.begin + row;
    return a.item(batch_) + (a.row_offsets ? a.row_offsets[at] : at * plan_.in_place_stride + unit0 * Format<T>::group);
  }

  void multiply_edge(const Tile& tile, Sum<T>* c, std::int64_t cols) {
    const std::int64_t width = kernel_.panel_cols, rows = tile.rows.count;
    if (tile.unit0 > 0) copy_rows(c, c_stride_, edge_, width, rows, cols);
    multiply_tile(tile, edge_, width, width);
    copy_rows(edge_, width, c, c_stride_, rows, cols);
  }

  const GemmArgs<T>& args_;
  const Plan<T>& plan_;
  const MicroKernel<T>& kernel_;
  const Packed<T>* shared_b_;
  Packed<T>* own_b_;
  Packed<Left<T>>* a_;
  Left<T>* computed_;
  Sum<T>*block_, *edge_;

  std::int64_t own_b_item_ = -1;             // which item own_b_ holds
  std::int64_t a_batch_ = -1, a_row0_ = -1;  // which rows a_ holds, over the whole depth
  std::int64_t batch_ = 0, row_panels_ = 0, c_stride_ = 0;
  EvenParts row_parts_;  // the steps of rows_, by tile, where no table says where they lie
  Range rows_{}, panels_{};
};

template <class T>
std::size_t workspace_as_written(const GemmArgs<T>& args, int threads) {
  const Plan<T> plan = make_plan(args, threads);
  const auto own = checked_mul(plan.worker_bytes, static_cast<std::size_t>(threads));
  const auto bytes = own ? checked_add(*own, plan.shared_bytes) : std::nullopt;
  if (!bytes) fail("gemm: the workspace of {} threads takes more bytes than 64 bits count", threads);
  return *bytes;
}

/// The product of sizes above 0 (but for k) in the order of its operands.
template <class T>
void multiply_as_written(const GemmArgs<T>& args, ThreadPool& pool) {
  const Plan<T> plan = make_plan(args, pool.size());
  const AlignedBuffer own_workspace(args.workspace ? 0 : workspace_as_written(args, pool.size()));
  std::byte* const workspace = args.workspace ? args.workspace : own_workspace.data();

  if (plan.b_source == BSource::shared) {
    pool.parallel_for(plan.b_items * plan.panels, 1, [&](std::int64_t begin, std::int64_t end, int) {
      Packed<T>* const panels = reinterpret_cast<Packed<T>*>(workspace);
      for (std::int64_t at = begin; at < end; ++at) {
        pack_panel_of_b(args, plan, at / plan.panels, at % plan.panels, panels + at * plan.panel_units);
      }
    });
  }
  const std::int64_t tasks = args.batch * plan.cut.row_blocks * plan.cut.col_blocks;
  pool.parallel_for(tasks, plan.cut.grain, [&](std::int64_t begin, std::int64_t end, int worker) {
    Worker<T> own(args, plan, workspace, worker);
    if (plan.kernel->begin) plan.kernel->begin();
    for (std::int64_t task = begin; task < end; ++task) own.run(task);
    if (plan.kernel->end) plan.kernel->end();  // tasks throw nothing: a destructor here would cost small products a tenth
  });
}

template <class T>
bool is_transposed(const GemmArgs<T>& args) {
  return args.choice ? args.choice->transposed : worth_transposing(args);
}

}  // namespace

template <class T>
std::size_t gemm_workspace(const GemmArgs<T>& args, int threads) {
  check_sizes(args);
  if (args.batch == 0 || args.m == 0 || args.n == 0) return 0;
  if constexpr (can_transpose<T>)
    if (is_transposed(args)) return workspace_as_written(Transposed<T>(args).args(), threads);
  return workspace_as_written(args, threads);
}

template <class T>
void gemm(const GemmArgs<T>& args, ThreadPool& pool) {
  check_sizes(args);
  if (args.batch == 0 || args.m == 0 || args.n == 0) return;
  check_matrices(args);
  if (has_few_columns(args)) return multiply_few_columns(args, pool);
  if constexpr (can_transpose<T>)
    if (is_transposed(args)) return multiply_as_written(Transposed<T>(args).args(), pool);
  multiply_as_written(args, pool);
}

template std::size_t gemm_workspace(const GemmArgs<float>&, int);
template std::size_t gemm_workspace(const GemmArgs<double>&, int);
template std::size_t gemm_workspace(const GemmArgs<Bf16>&, int);
template std::size_t gemm_workspace(const GemmArgs<F16>&, int);
template std::size_t gemm_workspace(const GemmArgs<Bf16Weight>&, int);
template std::size_t gemm_workspace(const GemmArgs<std::int8_t>&, int);
template void gemm(const GemmArgs<float>&, ThreadPool&);
template void gemm(const GemmArgs<double>&, ThreadPool&);
template void gemm(const GemmArgs<Bf16>&, ThreadPool&);
template void gemm(const GemmArgs<F16>&, ThreadPool&);
template void gemm(const GemmArgs<Bf16Weight>&, ThreadPool&);
template void gemm(const GemmArgs<std::int8_t>&, ThreadPool&);

}  // namespace rlx::cpu
