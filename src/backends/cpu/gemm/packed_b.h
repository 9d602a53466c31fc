#pragma once
#include <cstdint>
#include <span>

#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/machine/cpu_features.h"
#include "base/function_ref.h"
#include "base/memory/page_pieces.h"
#include "base/thread_pool.h"

namespace rlx::cpu {

/// A matrix of any layout per batch item; strides in elements, of any sign, 0 to repeat.
template <class T>
struct Matrix {
  const T* data = nullptr;
  std::int64_t row_stride = 0, col_stride = 0, batch_stride = 0;
  const std::int64_t* batch_offsets = nullptr;  // where each item starts, in place of batch_stride: for batches over several axes
  const std::int64_t *row_offsets = nullptr, *col_offsets = nullptr;  // where each row and column is, both, in place of the strides

  const T* item(std::int64_t batch) const { return data + (batch_offsets ? batch_offsets[batch] : batch * batch_stride); }
};

/// B (batch, k, n) in the layout of a kernel: panels of panel_cols columns, each (k, panel_cols) in units, the last and the depth padded
/// with zeros; before the units the starts of its columns, where the kernel is raised.
/// Weights are packed once and used by any number of calls and threads.
template <class T>
class PackedB {
 public:
  /// Panels that lie at `memory`, or in memory of their own, still to be filled. Throws Error for sizes below 0 or beyond 64 bits.
  PackedB(std::int64_t batch, std::int64_t k, std::int64_t n, const MicroKernel<T>& kernel = micro_kernel<T>(cpu_level()),
          std::byte* memory = nullptr);
  /// The bytes of memory that they take. Throws as they do.
  static std::int64_t bytes_of(std::int64_t batch, std::int64_t k, std::int64_t n, const MicroKernel<T>& kernel);
  /// Fills them with all threads of the pool.
  void pack(const Matrix<T>& b, ThreadPool& pool);

  std::int64_t batch() const { return batch_; }
  std::int64_t k() const { return k_; }
  std::int64_t n() const { return n_; }
  const MicroKernel<T>& kernel() const { return *kernel_; }
  std::int64_t panels() const { return panels_; }

  /// A panel of a batch item: MicroKernel::panel_units units.
  Packed<T>* panel(std::int64_t batch, std::int64_t index) { return data() + (batch * panels_ + index) * panel_units_; }
  const Packed<T>* panel(std::int64_t batch, std::int64_t index) const { return data() + (batch * panels_ + index) * panel_units_; }

 private:
  Packed<T>* data() const { return reinterpret_cast<Packed<T>*>(memory_); }

  std::int64_t batch_, k_, n_;
  const MicroKernel<T>* kernel_;
  std::int64_t panel_units_ = 0, panels_ = 0;
  PagePiece own_;
  std::byte* memory_;
};

/// B of one item as columns and steps of depth, from column `col0` on.
template <class T>
Strided<T> columns_of(const Matrix<T>& b, std::int64_t item, std::int64_t col0) {
  return Strided<T>{b.item(item), b.col_stride, b.row_stride, b.col_offsets, b.row_offsets}.at(col0, 0);
}

/// Packs one panel of B: the units of `lanes` columns in whole steps of depth, and their starts where the kernel is raised.
template <class T>
void pack_b_panel(const Strided<T>& from, std::int64_t lanes, std::int64_t k, const MicroKernel<T>& kernel, Packed<T>* panel);

/// Calls `body` for each panel of each item, on the worker that multiplies with it in products of one row on a pool of that size. Those are
/// bound by reading panels, and memory belongs to the node whose thread touches it first. Taller products read all panels on every worker.
template <class T>
void for_each_panel(const PackedB<T>& b, ThreadPool& pool, FunctionRef<void(std::int64_t item, std::int64_t panel)> body);

/// Packs B (batch, k, n) with all threads of the pool. Throws as PackedB does.
template <class T>
PackedB<T> pack_b(const Matrix<T>& b, std::int64_t batch, std::int64_t k, std::int64_t n, ThreadPool& pool,
                  const MicroKernel<T>& kernel = micro_kernel<T>(cpu_level()));

}  // namespace rlx::cpu
