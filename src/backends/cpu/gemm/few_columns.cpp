#include "backends/cpu/gemm/few_columns.h"

#include <algorithm>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/gemm/gemm_plan.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t most_rows = 128;  // of a block, which stays in the first-level cache

// To turn rows round takes as long as to multiply them with so many columns.
constexpr double columns_per_turn = 6;

/// One block of rows of C.
template <class T>
class Block {
 public:
  Block(const GemmArgs<T>& args, std::int64_t batch, Range rows) : args_(args), batch_(batch), rows_(rows) {}

  void run() {
    multiply();
    if (args_.epilogue && args_.epilogue_by_columns) return hand_over(by_columns_, most_rows);
    const bool straight = !args_.epilogue && args_.c_row_stride == args_.n;
    Sum<T>* const by_rows = straight ? c() : by_rows_;
    pack_panel<Sum<T>>({by_columns_, most_rows, 1}, args_.n, rows_.size(), by_rows, args_.n);
    if (args_.epilogue) return hand_over(by_rows, args_.n);
    if (straight) return;
    for (std::int64_t row = 0; row < rows_.size(); ++row) std::copy_n(by_rows + row * args_.n, args_.n, c() + row * args_.c_row_stride);
  }

 private:
  void multiply() {
    const PackedB<T>& b = *args_.packed_b;
    const MicroKernel<T>& kernel = b.kernel();
    const Packed<T>* const panel = b.panel(b.batch() == 1 ? 0 : batch_, 0);
    kernel.few_columns[args_.n](args_.k, args_.a.item(batch_) + rows_.begin * args_.a.row_stride, args_.a.row_stride, rows_.size(),
                                panel + (kernel.raised ? kernel.panel_cols : 0), reinterpret_cast<const Sum<T>*>(panel), by_columns_,
                                most_rows);
  }

  void hand_over(Sum<T>* tile, std::int64_t stride) {
    args_.epilogue(args_.epilogue_context, tile, stride, batch_, rows_.begin, rows_.size(), 0, args_.n);
  }

  Sum<T>* c() const {
    const std::int64_t item = args_.c_batch_offsets ? args_.c_batch_offsets[batch_] : batch_ * args_.c_batch_stride;
    return args_.c + item + rows_.begin * args_.c_row_stride;
  }

  const GemmArgs<T>& args_;
  const std::int64_t batch_;
  const Range rows_;
  alignas(AlignedBuffer::cache_line) Sum<T> by_columns_[MicroKernel<T>::most_few_columns * most_rows];
  alignas(AlignedBuffer::cache_line) Sum<T> by_rows_[MicroKernel<T>::most_few_columns * most_rows];
};

}  // namespace

template <class T>
bool has_few_columns(const GemmArgs<T>& args) {
  if (!args.packed_b || args.n > MicroKernel<T>::most_few_columns || !args.packed_b->kernel().few_columns[args.n]) return false;
  constexpr std::int64_t lanes = MicroKernel<T>::few_columns_rows;
  return args.k > 0 && args.m >= lanes && !args.compute_a && !args.a.row_offsets && args.a.col_stride == 1 && args.a.row_stride > 0 &&
         rows_fit_sets(args.a.row_stride * static_cast<std::int64_t>(sizeof(Left<T>)), lanes);
}

template <class T>
void multiply_few_columns(const GemmArgs<T>& args, ThreadPool& pool) {
  const std::int64_t blocks =
      std::max(divide_up(args.m, most_rows), std::min<std::int64_t>(pool.size(), args.m / MicroKernel<T>::few_columns_rows));
  const double cost =
      static_cast<double>(divide_up(args.m, blocks) * units_of<T>(args.k)) * (static_cast<double>(args.n) + columns_per_turn);
  pool.parallel_for(args.batch * blocks, grain_of(cost), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t task = begin; task < end; ++task) Block<T>(args, task / blocks, even_part(args.m, blocks, task % blocks)).run();
  });
}

template bool has_few_columns(const GemmArgs<float>&);
template bool has_few_columns(const GemmArgs<double>&);
template bool has_few_columns(const GemmArgs<Bf16>&);
template bool has_few_columns(const GemmArgs<F16>&);
template bool has_few_columns(const GemmArgs<Bf16Weight>&);
template bool has_few_columns(const GemmArgs<std::int8_t>&);
template void multiply_few_columns(const GemmArgs<float>&, ThreadPool&);
template void multiply_few_columns(const GemmArgs<double>&, ThreadPool&);
template void multiply_few_columns(const GemmArgs<Bf16>&, ThreadPool&);
template void multiply_few_columns(const GemmArgs<F16>&, ThreadPool&);
template void multiply_few_columns(const GemmArgs<Bf16Weight>&, ThreadPool&);
template void multiply_few_columns(const GemmArgs<std::int8_t>&, ThreadPool&);

}  // namespace rlx::cpu
