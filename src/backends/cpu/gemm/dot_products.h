#pragma once
#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {

/// The most columns of B that dot_products takes, and the least depth with which it is faster than gemm.
inline constexpr std::int64_t most_dot_columns = MicroKernel<float>::most_few_columns, least_dot_depth = 64;

/// C = A B as gemm has it, for few columns, with rows of A and columns of B that lie side by side along their depth: both are read where
/// they lie, once. Every element is summed in an order of its own, that of dot_tile.h, and of 65536 steps of depth at a time: the same
/// whatever the threads, the batch position, m, n and, but for bf16, the level, of those with fused multiply-add. Expects a.col_stride and
/// b.row_stride of 1, no tables of rows and columns, neither compute_a nor packed_b, n from 1 to most_dot_columns and a kernel that has
/// `dots`.
template <class T>
void dot_products(const GemmArgs<T>& args, ThreadPool& pool);

/// The bytes of scratch memory that it needs. Throws Error for sizes beyond 64 bits.
template <class T>
std::size_t dot_products_workspace(const GemmArgs<T>& args);

/// Columns of a B (k, n) of another layout, side by side along their depth.
template <class T>
class Columns {
 public:
  /// They lie at `memory`, or in memory of their own, still to be filled. Throws Error for sizes beyond 64 bits.
  Columns(std::int64_t k, std::int64_t n, std::byte* memory = nullptr);
  /// The bytes of memory that they take. Throws as they do.
  static std::int64_t bytes_of(std::int64_t k, std::int64_t n);
  void pack(const Matrix<T>& b);

  Matrix<T> matrix() const { return {reinterpret_cast<const T*>(memory_), 1, stride_of(k_), 0}; }

 private:
  static std::int64_t stride_of(std::int64_t k);

  std::int64_t k_, n_;
  PagePiece own_;
  std::byte* memory_;
};

}  // namespace rlx::cpu
