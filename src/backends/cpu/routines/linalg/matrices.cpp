// Factors of matrices and triangular systems: lu, cholesky and triangular_solve of src/ops/linalg/linear_systems.cpp.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "backends/cpu/routines/linalg/matrix_blocks.h"
#include "backends/cpu/routines/routine.h"

namespace rlx::cpu {
namespace {

/// Calls run(E()) for the element type.
template <class Run>
void for_element(DType type, const Run& run) {
  if (type == f32) run(float());
  else if (type == f64) run(double());
  else if (type == c64) run(Complex<float>());
  else run(Complex<double>());
}

std::int64_t matrices_in(const RoutineArray& x) {
  return std::accumulate(x.shape.begin(), x.shape.end() - 2, std::int64_t{1}, std::multiplies<>());
}

/// Calls run(begin, end) for ranges of matrices, on all threads where there are several matrices; each is one of `work` operations.
template <class Run>
void for_matrices(ThreadPool& pool, std::int64_t count, std::int64_t work, const Run& run) {
  if (count < pool.size()) return run(0, count);  // then each is computed by all threads
  pool.parallel_for(count, std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, work)),
                    [&](std::int64_t begin, std::int64_t end, int) { run(begin, end); });
}

void run_lu(const RoutineCall& call) {
  const RoutineArray &in = call.operands[0], &out = call.results[0];
  const std::int64_t rows = in.shape[in.shape.size() - 2], columns = in.shape.back(), steps = std::min(rows, columns);
  const auto factor = [&](auto element, std::int64_t begin, std::int64_t end) {
    using E = decltype(element);
    const MatrixBlocks<E> blocks(call.level, call.pool);
    for (std::int64_t m = begin; m < end; ++m) {
      E* a = out.as<E>() + m * rows * columns;
      std::copy_n(in.as<E>() + m * rows * columns, rows * columns, a);
      std::int32_t *pivots = call.results[1].as<std::int32_t>() + m * steps, *order = call.results[2].as<std::int32_t>() + m * rows;
      blocks.factor({a, columns}, rows, columns, pivots);
      std::iota(order, order + rows, 0);
      for (std::int64_t k = 0; k < steps; ++k) std::swap(order[k], order[pivots[k]]);
    }
  };
  for_element(in.dtype, [&](auto element) {
    for_matrices(call.pool, matrices_in(in), rows * columns * steps,
                 [&](std::int64_t begin, std::int64_t end) { factor(element, begin, end); });
  });
}

template <class E>
E not_a_number() {
  if constexpr (std::is_floating_point_v<E>) return std::numeric_limits<E>::quiet_NaN();
  else return {std::numeric_limits<decltype(E::re)>::quiet_NaN(), 0};
}

void run_cholesky(const RoutineCall& call) {
  const RoutineArray &in = call.operands[0], &out = call.results[0];
  const std::int64_t n = in.shape.back();
  const auto factor = [&](auto element, std::int64_t begin, std::int64_t end) {
    using E = decltype(element);
    const MatrixBlocks<E> blocks(call.level, call.pool);
    for (std::int64_t m = begin; m < end; ++m) {
      E* a = out.as<E>() + m * n * n;
      std::copy_n(in.as<E>() + m * n * n, n * n, a);
      const bool definite = blocks.factor_definite({a, n}, n);
      for (std::int64_t i = 0; i < n; ++i) {
        if (!definite) std::fill_n(a + i * n, i + 1, not_a_number<E>());
        std::fill_n(a + i * n + i + 1, n - i - 1, E{});
      }
    }
  };
  for_element(in.dtype, [&](auto element) {
    for_matrices(call.pool, matrices_in(in), n * n * n, [&](std::int64_t begin, std::int64_t end) { factor(element, begin, end); });
  });
}

void run_triangular_solve(const RoutineCall& call) {
  const auto flag = [&](std::size_t i) { return std::get<bool>(call.attrs[i]); };
  const bool left = flag(0), lower = flag(1), transposed = flag(2), unit = flag(3);
  const RoutineArray &triangle = call.operands[0], &in = call.operands[1], &out = call.results[0];
  const std::int64_t n = triangle.shape.back(), rows = in.shape[in.shape.size() - 2], columns = in.shape.back();
  const bool forward = left ? lower != transposed : lower == transposed;
  const auto solve = [&](auto element, std::int64_t begin, std::int64_t end) {
    using E = decltype(element);
    const MatrixBlocks<E> blocks(call.level, call.pool);
    for (std::int64_t m = begin; m < end; ++m) {
      E* x = out.as<E>() + m * rows * columns;
      std::copy_n(in.as<E>() + m * rows * columns, rows * columns, x);
      MatrixView<E> a{triangle.as<E>() + m * n * n, n};
      if (transposed) a = a.transposed();
      if (left) blocks.solve_left(a, n, forward, unit, {x, columns}, columns);
      else blocks.solve_right(a, n, forward, unit, {x, columns}, rows);
    }
  };
  for_element(in.dtype, [&](auto element) {
    for_matrices(call.pool, matrices_in(in), n * rows * columns, [&](std::int64_t begin, std::int64_t end) { solve(element, begin, end); });
  });
}

bool takes_any(const Graph&, const Node&) { return true; }

const RegisterRoutine lu_routine({"lu", takes_any, run_lu});
const RegisterRoutine cholesky_routine({"cholesky", takes_any, run_cholesky});
const RegisterRoutine triangular_solve_routine({"triangular_solve", takes_any, run_triangular_solve});

}  // namespace
}  // namespace rlx::cpu
