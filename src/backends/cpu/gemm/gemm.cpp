#include "backends/cpu/gemm/gemm.h"

#include <algorithm>

#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/gemm/plan.h"
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
  if (args.k > 0 && !args.pack_a && !args.a.data) fail("gemm: neither A nor a function that packs it is given");
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
void pack_b_panel(const GemmArgs<T>& args, const Plan<T>& plan, std::int64_t item, std::int64_t panel, T* to) {
  if (args.k == 0) return;
  const std::int64_t width = plan.kernel->panel_cols, col0 = panel * width;
  const Strided<T> source{args.b.item(item) + col0 * args.b.col_stride, args.b.col_stride, args.b.row_stride};
  pack_panel(source, std::min(width, args.n - col0), args.k, to, width);
}

/// One worker's part of a product: runs tasks one after the other and keeps what the next task can use again.
template <class T>
class Worker {
 public:
  Worker(const GemmArgs<T>& args, const Plan<T>& plan, std::byte* workspace, int worker) : args_(args), plan_(plan), kernel_(*plan.kernel) {
    shared_b_ = reinterpret_cast<const T*>(workspace);
    std::byte* own = workspace + plan.shared_bytes + static_cast<std::size_t>(worker) * plan.worker_bytes;
    own_b_ = reinterpret_cast<T*>(own);
    a_ = reinterpret_cast<T*>(own + plan.b_bytes);
    block_ = reinterpret_cast<T*>(own + plan.b_bytes + plan.a_bytes);
    edge_ = reinterpret_cast<T*>(own + plan.b_bytes + plan.a_bytes + plan.block_bytes);
  }

  /// Computes one block of C. Tasks count up over (batch, row block, column block).
  void run(std::int64_t task) {
    const std::int64_t row_block = task / plan_.cut.col_blocks % plan_.cut.row_blocks;
    batch_ = task / plan_.cut.col_blocks / plan_.cut.row_blocks;
    rows_ = even_part(args_.m, plan_.cut.row_blocks, row_block);
    panels_ = even_part(plan_.panels, plan_.cut.col_blocks, task % plan_.cut.col_blocks);
    row_panels_ = divide_up(rows_.size(), kernel_.max_rows);
    const T* b = item_of_b();
    T* const c = c_of_block();
    for (std::int64_t k0 = 0; k0 < args_.k || k0 == 0; k0 += plan_.cut.depth) {
      const std::int64_t depth = std::min(plan_.cut.depth, args_.k - k0);
      pack_a(k0, depth);
      multiply(b + k0 * kernel_.panel_cols, depth, c, k0 > 0);
    }
    if (args_.epilogue) {
      const std::int64_t col0 = panels_.begin * kernel_.panel_cols, cols = std::min(panels_.end * kernel_.panel_cols, args_.n) - col0;
      args_.epilogue(args_.epilogue_context, c, c_stride_, batch_, rows_.begin, rows_.size(), col0, cols);
    }
  }

 private:
  const T* item_of_b() {
    if (plan_.b_source == BSource::packed) return args_.packed_b->panel(args_.packed_b->batch() == 1 ? 0 : batch_, 0);
    const std::int64_t item = plan_.b_items == 1 ? 0 : batch_;
    const std::int64_t panel_elements = plan_.panel_elements(args_);
    if (plan_.b_source == BSource::shared) return shared_b_ + item * plan_.panels * panel_elements;
    if (own_b_item_ != item) {
      for (std::int64_t p = 0; p < plan_.panels; ++p) pack_b_panel(args_, plan_, item, p, own_b_ + p * panel_elements);
      own_b_item_ = item;
    }
    return own_b_;
  }

  /// Where the block is summed up, also between passes: its place in C, or scratch memory for an epilogue.
  T* c_of_block() {
    if (args_.epilogue) {
      c_stride_ = panels_.size() * kernel_.panel_cols;
      return block_;
    }
    c_stride_ = args_.c_row_stride;
    T* item = args_.c + (args_.c_batch_offsets ? args_.c_batch_offsets[batch_] : batch_ * args_.c_batch_stride);
    return item + rows_.begin * c_stride_ + panels_.begin * kernel_.panel_cols;
  }

  void pack_a(std::int64_t k0, std::int64_t depth) {
    const bool whole = depth == args_.k;  // then the next block of columns finds it here
    if (whole && a_batch_ == batch_ && a_row0_ == rows_.begin) return;
    a_batch_ = whole ? batch_ : -1;
    a_row0_ = rows_.begin;
    for (std::int64_t index = 0; index < row_panels_; ++index) {
      const Range part = even_part(rows_.size(), row_panels_, index);
      const std::int64_t row0 = rows_.begin + part.begin;
      T* panel = a_ + part.begin * depth;
      if (args_.pack_a) {
        args_.pack_a(args_.pack_a_context, panel, batch_, row0, part.size(), k0, depth);
      } else if (depth > 0) {
        const Matrix<T>& a = args_.a;
        pack_panel({a.item(batch_) + row0 * a.row_stride + k0 * a.col_stride, a.row_stride, a.col_stride}, part.size(), depth, panel,
                   part.size());
      }
    }
  }

  void multiply(const T* b, std::int64_t depth, T* c, bool accumulate) {
    const std::int64_t stride = plan_.panel_elements(args_), width = kernel_.panel_cols;
    // The last panel may be wider than C; a scratch block has room for it.
    const std::int64_t whole_end = args_.epilogue ? panels_.end : std::min(panels_.end, args_.n / width);
    for (std::int64_t p = panels_.begin; p < panels_.end; ++p) {
      for (std::int64_t index = 0; index < row_panels_; ++index) {
        const Range part = even_part(rows_.size(), row_panels_, index);
        const T* a = a_ + part.begin * depth;
        T* to = c + part.begin * c_stride_ + (p - panels_.begin) * width;
        if (p < whole_end) {
          kernel_.tiles[part.size()](depth, a, b + p * stride, to, c_stride_, accumulate);
        } else {
          multiply_edge(depth, a, b + p * stride, to, part.size(), args_.n - p * width, accumulate);
        }
      }
    }
  }

  void multiply_edge(std::int64_t depth, const T* a, const T* b, T* c, std::int64_t rows, std::int64_t cols, bool accumulate) {
    const std::int64_t width = kernel_.panel_cols;
    for (std::int64_t r = 0; accumulate && r < rows; ++r) std::copy_n(c + r * c_stride_, cols, edge_ + r * width);
    kernel_.tiles[rows](depth, a, b, edge_, width, accumulate);
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(edge_ + r * width, cols, c + r * c_stride_);
  }

  const GemmArgs<T>& args_;
  const Plan<T>& plan_;
  const MicroKernel<T>& kernel_;
  const T* shared_b_;
  T *own_b_, *a_, *block_, *edge_;

  std::int64_t own_b_item_ = -1;             // which item own_b_ holds
  std::int64_t a_batch_ = -1, a_row0_ = -1;  // which rows a_ holds, over the whole depth
  std::int64_t batch_ = 0, row_panels_ = 0, c_stride_ = 0;
  Range rows_{}, panels_{};
};

}  // namespace

template <class T>
std::size_t gemm_workspace(const GemmArgs<T>& args, int threads) {
  check_sizes(args);
  if (args.batch == 0 || args.m == 0 || args.n == 0) return 0;
  const Plan<T> plan = make_plan(args, threads);
  const auto own = checked_mul(plan.worker_bytes, static_cast<std::size_t>(threads));
  const auto bytes = own ? checked_add(*own, plan.shared_bytes) : std::nullopt;
  if (!bytes) fail("gemm: the workspace of {} threads takes more bytes than 64 bits count", threads);
  return *bytes;
}

template <class T>
void gemm(const GemmArgs<T>& args, ThreadPool& pool) {
  check_sizes(args);
  if (args.batch == 0 || args.m == 0 || args.n == 0) return;
  check_matrices(args);
  const Plan<T> plan = make_plan(args, pool.size());
  const AlignedBuffer own_workspace(args.workspace ? 0 : gemm_workspace(args, pool.size()));
  std::byte* const workspace = args.workspace ? args.workspace : own_workspace.data();

  if (plan.b_source == BSource::shared) {
    pool.parallel_for(plan.b_items * plan.panels, 1, [&](std::int64_t begin, std::int64_t end, int) {
      T* const panels = reinterpret_cast<T*>(workspace);
      for (std::int64_t at = begin; at < end; ++at) {
        pack_b_panel(args, plan, at / plan.panels, at % plan.panels, panels + at * plan.panel_elements(args));
      }
    });
  }
  const std::int64_t tasks = args.batch * plan.cut.row_blocks * plan.cut.col_blocks;
  pool.parallel_for(tasks, plan.cut.grain, [&](std::int64_t begin, std::int64_t end, int worker) {
    Worker<T> own(args, plan, workspace, worker);
    for (std::int64_t task = begin; task < end; ++task) own.run(task);
  });
}

template std::size_t gemm_workspace(const GemmArgs<float>&, int);
template std::size_t gemm_workspace(const GemmArgs<double>&, int);
template void gemm(const GemmArgs<float>&, ThreadPool&);
template void gemm(const GemmArgs<double>&, ThreadPool&);

}  // namespace rlx::cpu
