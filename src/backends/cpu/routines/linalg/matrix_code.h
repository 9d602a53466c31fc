#pragma once
#include "backends/cpu/routines/linalg/matrix_kernel.h"

// The code of MatrixKernel for vectors V: { Element, Vector, lanes, load, store, all, subtract_product(a, b, c) = c - a * b,
// magnitude(element), conjugate(element), root(element), positive(element) }. In an anonymous namespace, as each instruction set has its
// own.

namespace rlx::cpu {
namespace {

template <class V>
struct MatrixCode {
  using E = typename V::Element;
  using Vector = typename V::Vector;
  static constexpr int lanes = V::lanes, most_vectors = 8;

  template <int vectors>
  static void solve_columns(const E* m, std::int64_t row, std::int64_t column, std::int64_t n, bool forward, bool unit, E* x,
                            std::int64_t stride) {
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t i = forward ? step : n - 1 - step, first = forward ? 0 : i + 1;
      Vector sums[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[v] = V::load(x + i * stride + v * lanes);
      for (std::int64_t j = first; j < first + step; ++j) {
        const Vector factor = V::all(m[i * row + j * column]);
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sums[v] = V::subtract_product(factor, V::load(x + j * stride + v * lanes), sums[v]);
      }
      if (!unit) {
        const Vector pivot = V::all(m[i * row + i * column]);
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sums[v] = sums[v] / pivot;
      }
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) V::store(x + i * stride + v * lanes, sums[v]);
    }
  }

  static void solve(const E* m, std::int64_t row, std::int64_t column, std::int64_t n, bool forward, bool unit, E* x, std::int64_t stride,
                    std::int64_t columns) {
    std::int64_t c = 0;
    for (; c + most_vectors * lanes <= columns; c += most_vectors * lanes)
      solve_columns<most_vectors>(m, row, column, n, forward, unit, x + c, stride);
    for (; c + 2 * lanes <= columns; c += 2 * lanes) solve_columns<2>(m, row, column, n, forward, unit, x + c, stride);
    for (; c < columns; c += lanes) {
      const std::int64_t left = columns - c;
      if (left >= lanes) {
        solve_columns<1>(m, row, column, n, forward, unit, x + c, stride);
        continue;
      }
      E block[MatrixKernel<E>::most_rows * lanes];
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t l = 0; l < lanes; ++l) block[i * lanes + l] = l < left ? x[i * stride + c + l] : E{};
      solve_columns<1>(m, row, column, n, forward, unit, block, lanes);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t l = 0; l < left; ++l) x[i * stride + c + l] = block[i * lanes + l];
    }
  }

  /// c -= the sum of `count` columns, `stride` apart, times factors.
  static void update(const E* columns, std::int64_t stride, std::int64_t count, const E* factors, E* c, std::int64_t rows) {
    std::int64_t i = 0;
    constexpr int vectors = 4;
    for (; i + vectors * lanes <= rows; i += vectors * lanes) {
      Vector sums[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[v] = V::load(c + i + v * lanes);
      for (std::int64_t k = 0; k < count; ++k) {
        const Vector factor = V::all(factors[k]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sums[v] = V::subtract_product(factor, V::load(columns + k * stride + i + v * lanes), sums[v]);
      }
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) V::store(c + i + v * lanes, sums[v]);
    }
    for (; i + lanes <= rows; i += lanes) {
      Vector sum = V::load(c + i);
      for (std::int64_t k = 0; k < count; ++k) sum = V::subtract_product(V::all(factors[k]), V::load(columns + k * stride + i), sum);
      V::store(c + i, sum);
    }
    for (; i < rows; ++i)
      for (std::int64_t k = 0; k < count; ++k) c[i] = c[i] - columns[k * stride + i] * factors[k];
  }

  /// y -= the sum of the first `count` products of a row, whose elements are `stride` apart, and a column.
  static void subtract_row(const E* row, std::int64_t stride, std::int64_t count, const E* c, E* y) {
    if constexpr (lanes == 1) {
      Vector sum = V::load(y);
      for (std::int64_t i = 0; i < count; ++i) sum = V::subtract_product(V::load(row + i * stride), V::load(c + i), sum);
      V::store(y, sum);
    } else {
      for (std::int64_t i = 0; i < count; ++i) *y = *y - row[i * stride] * c[i];
    }
  }

  static void divide(E* c, std::int64_t rows, E by) {
    std::int64_t i = 0;
    for (; i + lanes <= rows; i += lanes) V::store(c + i, V::load(c + i) / V::all(by));
    for (; i < rows; ++i) c[i] = c[i] / by;
  }

  /// The first of largest magnitude; NaN is larger than nothing, and nothing than NaN.
  static std::int64_t largest(const E* c, std::int64_t rows) {
    std::int64_t at = 0, i = 0;
    auto most = V::magnitude(c[0]);
    if constexpr (lanes > 1) {
      // What a whole vector cannot beat is passed over.
      for (; i + lanes <= rows; i += lanes)
        if (V::any_larger(V::load(c + i), most))
          for (int l = 0; l < lanes; ++l)
            if (V::magnitude(c[i + l]) > most) most = V::magnitude(c[i + l]), at = i + l;
    }
    for (; i < rows; ++i)
      if (V::magnitude(c[i]) > most) most = V::magnitude(c[i]), at = i;
    return at;
  }

  static void factor(E* a, std::int64_t stride, std::int64_t rows, std::int64_t columns, std::int32_t* pivots) {
    const std::int64_t steps = rows < columns ? rows : columns;
    for (std::int64_t j = 0; j < columns; ++j) {
      E* c = a + j * stride;
      const std::int64_t above = j < steps ? j : steps;
      for (std::int64_t k = 1; k < above; ++k)  // the part of U, which are the factors of what is below
        subtract_row(a + k, stride, k, c, c + k);
      if (above < rows) update(a + above, stride, above, c, c + above, rows - above);
      if (j >= steps) continue;
      const std::int64_t pivot = j + largest(c + j, rows - j);
      pivots[j] = static_cast<std::int32_t>(pivot);
      if (pivot != j)
        for (std::int64_t k = 0; k < columns; ++k) {
          const E kept = a[k * stride + j];
          a[k * stride + j] = a[k * stride + pivot];
          a[k * stride + pivot] = kept;
        }
      if (!(c[j] == E{})) divide(c + j + 1, rows - j - 1, c[j]);
    }
  }

  static bool factor_definite(E* a, std::int64_t stride, std::int64_t n) {
    E factors[MatrixKernel<E>::most_rows];
    for (std::int64_t j = 0; j < n; ++j) {
      E* c = a + j * stride;
      for (std::int64_t k = 0; k < j; ++k) factors[k] = V::conjugate(a[k * stride + j]);
      update(a + j, stride, j, factors, c + j, n - j);
      if (!V::positive(c[j])) return false;
      c[j] = V::root(c[j]);
      divide(c + j + 1, n - j - 1, c[j]);
    }
    return true;
  }

  static constexpr MatrixKernel<E> table() { return {solve, factor, factor_definite}; }
};

}  // namespace
}  // namespace rlx::cpu
