#pragma once
#include <span>

#include "backends/cpu/routines/linalg/matrix_kernel.h"
#include "base/thread_pool.h"

namespace rlx::cpu {

/// A matrix in memory: element (i, j) at data[i * row + j * column].
template <class E>
struct MatrixView {
  E* data = nullptr;
  std::int64_t row = 0, column = 1;
  MatrixView from(std::int64_t i, std::int64_t j) const { return {data + i * row + j * column, row, column}; }
  MatrixView transposed() const { return {data, column, row}; }
};

/// Factorisations of one matrix by halves, down to blocks of the kernel: nearly all of the work is matrix products, on all threads of the
/// pool. Bits depend on sizes and the level of the CPU alone.
template <class E>
class MatrixBlocks {
 public:
  MatrixBlocks(CpuLevel level, ThreadPool& pool) : level_(level), kernel_(matrix_kernel<E>(level)), pool_(pool) {}

  /// X with M X = X as it was, `columns` of them, whose rows are dense; M is lower triangular where `forward`, else upper.
  void solve_left(MatrixView<E> m, std::int64_t n, bool forward, bool unit, MatrixView<E> x, std::int64_t columns) const;
  /// X with X M = X as it was, `rows` of them; M is upper triangular where `forward`, else lower.
  void solve_right(MatrixView<E> m, std::int64_t n, bool forward, bool unit, MatrixView<E> x, std::int64_t rows) const;
  /// P A = L U in place; pivots of min(rows, columns) steps. Rows of A are dense.
  void factor(MatrixView<E> a, std::int64_t rows, std::int64_t columns, std::int32_t* pivots) const;
  /// A = L L^H in place of the lower triangle, of which nothing is known where the result is false: then A is not positive definite. What
  /// is above the diagonal is overwritten.
  bool factor_definite(MatrixView<E> a, std::int64_t n) const;

 private:
  /// c -= a b, or a times b conjugated, of m rows and n columns; rows of c are dense.
  void subtract_product(MatrixView<E> a, MatrixView<E> b, MatrixView<E> c, std::int64_t m, std::int64_t n, std::int64_t k,
                        bool conjugated = false) const;
  void subtract_own_product(MatrixView<E> a, MatrixView<E> c, std::int64_t n, std::int64_t k) const;
  void solve_block_right(MatrixView<E> m, std::int64_t n, bool forward, bool unit, MatrixView<E> x, std::int64_t rows) const;
  void factor_columns(MatrixView<E> a, std::int64_t rows, std::int64_t columns, std::int32_t* pivots) const;
  void factor_block(MatrixView<E> a, std::int64_t rows, std::int64_t columns, std::int32_t* pivots) const;
  void exchange_rows(MatrixView<E> a, std::int64_t columns, std::span<const std::int32_t> pivots) const;

  CpuLevel level_;
  const MatrixKernel<E>& kernel_;
  ThreadPool& pool_;
};

}  // namespace rlx::cpu
