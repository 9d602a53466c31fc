#include "backends/cpu/gemm/transposed.h"

#include <algorithm>

#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"

namespace rlx::cpu {
namespace {

template <class T>
const MicroKernel<T>& kernel_of(const GemmArgs<T>& args) {
  return args.packed_b ? args.packed_b->kernel() : *args.kernel;
}

template <class T>
Matrix<T> transposed(const Matrix<T>& x) {
  return {x.data, x.col_stride, x.row_stride, x.batch_stride, x.batch_offsets, x.col_offsets, x.row_offsets};
}

/// B^T of a B that is packed in one panel, whose units are elements.
template <class T>
Matrix<T> transposed(const PackedB<T>& b) {
  const std::int64_t item = b.batch() > 1 ? b.panel(1, 0) - b.panel(0, 0) : 0;
  return {reinterpret_cast<const T*>(b.panel(0, 0)), 1, b.kernel().panel_cols, item};
}

}  // namespace

template <class T>
bool worth_transposing(const GemmArgs<T>& args) {
  if constexpr (!can_transpose<T>) return false;
  const MicroKernel<T>& kernel = kernel_of(args);
  const std::int64_t width = kernel.panel_cols, least = kernel.stores_parts ? width / 2 : width;  // columns that are computed
  return !args.compute_a && args.n <= least / 2 && args.m >= width;
}

template <class T>
Transposed<T>::Transposed(const GemmArgs<T>& given) : given_(given), args_{.kernel = &kernel_of(given)} {
  args_.batch = given.batch, args_.m = given.n, args_.n = given.m, args_.k = given.k;
  args_.a = given.packed_b ? transposed(*given.packed_b) : transposed(given.b);
  args_.b = transposed(given.a);
  args_.workspace = given.workspace;
  args_.choice = given.choice;
  args_.epilogue_by_columns = !given.epilogue || !given.epilogue_by_columns;
  args_.epilogue_context = this;
  args_.epilogue = [](void* self, Sum<T>* tile, std::int64_t stride, std::int64_t batch, std::int64_t row0, std::int64_t rows,
                      std::int64_t col0,
                      std::int64_t cols) { static_cast<const Transposed*>(self)->finish(tile, stride, batch, col0, cols, row0, rows); };
}

/// A block of C, in the order of axes in which the given epilogue takes it, or else by rows.
template <class T>
void Transposed<T>::finish(Sum<T>* tile, std::int64_t stride, std::int64_t batch, std::int64_t row0, std::int64_t rows, std::int64_t col0,
                           std::int64_t cols) const {
  if (given_.epilogue) return given_.epilogue(given_.epilogue_context, tile, stride, batch, row0, rows, col0, cols);
  Sum<T>* to = given_.c + (given_.c_batch_offsets ? given_.c_batch_offsets[batch] : batch * given_.c_batch_stride);
  to += row0 * given_.c_row_stride + col0;
  for (std::int64_t r = 0; r < rows; ++r, tile += stride, to += given_.c_row_stride) std::copy_n(tile, cols, to);
}

template bool worth_transposing(const GemmArgs<float>&);
template bool worth_transposing(const GemmArgs<double>&);
template bool worth_transposing(const GemmArgs<Bf16>&);
template bool worth_transposing(const GemmArgs<F16>&);
template bool worth_transposing(const GemmArgs<Bf16Weight>&);
template bool worth_transposing(const GemmArgs<std::int8_t>&);
template class Transposed<float>;
template class Transposed<double>;

}  // namespace rlx::cpu
