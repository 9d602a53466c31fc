#pragma once
#include <cstdint>

#include "backends/cpu/machine/cpu_features.h"

namespace rlx::cpu {

/// A complex number as it lies in memory, with the products that need no rules for infinities.
template <class T>
struct Complex {
  T re = 0, im = 0;
  friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  /// By Smith's way (1962), which overflows only where the quotient does.
  friend Complex operator/(Complex a, Complex b) {
    if ((b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im)) {
      const T r = b.im / b.re, d = b.re + b.im * r;
      return {(a.re + a.im * r) / d, (a.im - a.re * r) / d};
    }
    const T r = b.re / b.im, d = b.re * r + b.im;
    return {(a.re * r + a.im) / d, (a.im * r - a.re) / d};
  }
  friend bool operator==(const Complex&, const Complex&) = default;
};

/// The innermost blocks of factorisations, for elements E: float, double, or complex ones of those. Products of larger blocks are matrix
/// products.
template <class E>
struct MatrixKernel {
  static constexpr std::int64_t most_rows = 32;  // of a block that is solved

  /// X (n, columns) with M X = X as it was: M is lower triangular where the solution runs `forward`, else upper; element (i, j) of it is
  /// m[i * row + j * column]. `stride` elements from row to row of X; n up to most_rows. With `unit` the diagonal counts as ones.
  void (*solve)(const E* m, std::int64_t row, std::int64_t column, std::int64_t n, bool forward, bool unit, E* x, std::int64_t stride,
                std::int64_t columns);
  /// The factors of (rows, columns) by partial pivoting in place: columns lie `stride` apart, the elements of one side by side. Step k
  /// exchanges row k for pivots[k]; min(rows, columns) steps.
  void (*factor)(E* a, std::int64_t stride, std::int64_t rows, std::int64_t columns, std::int32_t* pivots);
  /// The lower factor of Cholesky of (n, n), in the same layout; false where the matrix is not positive definite.
  bool (*factor_definite)(E* a, std::int64_t stride, std::int64_t n);
};

template <class E>
const MatrixKernel<E>& matrix_kernel(CpuLevel level);

}  // namespace rlx::cpu
