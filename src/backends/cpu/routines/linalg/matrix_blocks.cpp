#include "backends/cpu/routines/linalg/matrix_blocks.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t block_rows = 32, panel_columns = 16;
static_assert(block_rows <= MatrixKernel<float>::most_rows);

/// Memory of the calling thread, kept for the next product.
std::byte* product_memory(std::size_t bytes) {
  static thread_local AlignedBuffer buffer;
  static thread_local std::size_t size = 0;
  if (bytes > size) {
    buffer = AlignedBuffer();
    size = 0;
    buffer = AlignedBuffer(bytes);
    size = bytes;
  }
  return buffer.data();
}

template <class T>
std::vector<T>& panel_memory(std::size_t elements) {
  static thread_local std::vector<T> memory;
  if (memory.size() < elements) memory.resize(elements);
  return memory;
}

template <class T>
struct Target {
  T* data;
  std::int64_t row, column;
  T sign;
};

/// c += sign * a b of real numbers, all of any strides.
template <class T>
void add_product(MatrixView<const T> a, MatrixView<const T> b, Target<T> c, std::int64_t m, std::int64_t n, std::int64_t k, CpuLevel level,
                 ThreadPool& pool) {
  GemmArgs<T> args;
  args.m = m, args.n = n, args.k = k;
  args.a = {a.data, a.row, a.column};
  args.b = {b.data, b.row, b.column};
  args.kernel = &micro_kernel<T>(level);
  args.epilogue_context = &c;
  args.epilogue = [](void* context, T* tile, std::int64_t stride, std::int64_t, std::int64_t row0, std::int64_t rows, std::int64_t col0,
                     std::int64_t cols) {
    const Target<T> to = *static_cast<const Target<T>*>(context);
    for (std::int64_t i = 0; i < rows; ++i) {
      T* at = to.data + (row0 + i) * to.row + col0 * to.column;
      const T* from = tile + i * stride;
      if (to.column == 1 && to.sign < 0)
        for (std::int64_t j = 0; j < cols; ++j) at[j] -= from[j];
      else
        for (std::int64_t j = 0; j < cols; ++j) at[j * to.column] += to.sign * from[j];
    }
  };
  args.workspace = product_memory(gemm_workspace(args, pool.size()));
  gemm(args, pool);
}

template <class E>
struct PartOf {
  using Type = E;
};
template <class T>
struct PartOf<Complex<T>> {
  using Type = T;
};

/// The halves of a triangular system: whole blocks before the cut.
std::int64_t cut_of(std::int64_t n, std::int64_t block) { return ((n + block - 1) / block + 1) / 2 * block; }

}  // namespace

template <class E>
void MatrixBlocks<E>::subtract_product(MatrixView<E> a, MatrixView<E> b, MatrixView<E> c, std::int64_t m, std::int64_t n, std::int64_t k,
                                       [[maybe_unused]] bool conjugated) const {
  if (m == 0 || n == 0 || k == 0) return;
  if constexpr (std::is_floating_point_v<E>) {
    add_product<E>({a.data, a.row, a.column}, {b.data, b.row, b.column}, {c.data, c.row, c.column, -1}, m, n, k, level_, pool_);
  } else {
    using T = typename PartOf<E>::Type;
    const auto part = [](MatrixView<E> x, int which) {
      return MatrixView<const T>{reinterpret_cast<const T*>(x.data) + which, 2 * x.row, 2 * x.column};
    };
    const auto add = [&](int of_a, int of_b, T sign) {
      T* to = reinterpret_cast<T*>(c.data) + (of_a != of_b);
      add_product<T>(part(a, of_a), part(b, of_b), {to, 2 * c.row, 2 * c.column, sign}, m, n, k, level_, pool_);
    };
    const T turn = conjugated ? -1 : 1;
    add(0, 0, -1);
    add(1, 1, turn);
    add(0, 1, -turn);
    add(1, 0, -1);
  }
}

template <class E>
void MatrixBlocks<E>::solve_left(MatrixView<E> m, std::int64_t n, bool forward, bool unit, MatrixView<E> x, std::int64_t columns) const {
  if (n == 0 || columns == 0) return;
  if (n <= block_rows) {
    constexpr std::int64_t piece = 64;
    pool_.parallel_for(columns, std::max<std::int64_t>(piece, 65536 / (n * n) / piece * piece),
                       [&](std::int64_t begin, std::int64_t end, int) {
                         kernel_.solve(m.data, m.row, m.column, n, forward, unit, x.data + begin, x.row, end - begin);
                       });
    return;
  }
  const std::int64_t cut = cut_of(n, block_rows);
  if (forward) {
    solve_left(m, cut, forward, unit, x, columns);
    subtract_product(m.from(cut, 0), x, x.from(cut, 0), n - cut, columns, cut);
    solve_left(m.from(cut, cut), n - cut, forward, unit, x.from(cut, 0), columns);
  } else {
    solve_left(m.from(cut, cut), n - cut, forward, unit, x.from(cut, 0), columns);
    subtract_product(m.from(0, cut), x.from(cut, 0), x, cut, columns, n - cut);
    solve_left(m, cut, forward, unit, x, columns);
  }
}

template <class E>
void MatrixBlocks<E>::solve_block_right(MatrixView<E> m, std::int64_t n, bool forward, bool unit, MatrixView<E> x,
                                        std::int64_t rows) const {
  constexpr std::int64_t piece = 64;
  pool_.parallel_for(rows, std::max<std::int64_t>(piece, 65536 / (n * n) / piece * piece), [&](std::int64_t begin, std::int64_t end, int) {
    E turned[block_rows * piece];  // (n, piece): M^T X^T = B^T
    for (; begin < end; begin += piece) {
      const std::int64_t count = std::min(piece, end - begin);
      for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t i = 0; i < n; ++i) turned[i * piece + r] = x.data[(begin + r) * x.row + i];
      kernel_.solve(m.data, m.column, m.row, n, forward, unit, turned, piece, count);
      for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t i = 0; i < n; ++i) x.data[(begin + r) * x.row + i] = turned[i * piece + r];
    }
  });
}

template <class E>
void MatrixBlocks<E>::solve_right(MatrixView<E> m, std::int64_t n, bool forward, bool unit, MatrixView<E> x, std::int64_t rows) const {
  if (n == 0 || rows == 0) return;
  if (n <= block_rows) return solve_block_right(m, n, forward, unit, x, rows);
  const std::int64_t cut = cut_of(n, block_rows);
  if (forward) {
    solve_right(m, cut, forward, unit, x, rows);
    subtract_product(x, m.from(0, cut), x.from(0, cut), rows, n - cut, cut);
    solve_right(m.from(cut, cut), n - cut, forward, unit, x.from(0, cut), rows);
  } else {
    solve_right(m.from(cut, cut), n - cut, forward, unit, x.from(0, cut), rows);
    subtract_product(x.from(0, cut), m.from(cut, 0), x, rows, cut, n - cut);
    solve_right(m, cut, forward, unit, x, rows);
  }
}

template <class E>
void MatrixBlocks<E>::exchange_rows(MatrixView<E> a, std::int64_t columns, std::span<const std::int32_t> pivots) const {
  for (std::size_t k = 0; k < pivots.size(); ++k) {
    E *one = a.data + static_cast<std::int64_t>(k) * a.row, *other = a.data + pivots[k] * a.row;
    if (one != other) std::swap_ranges(one, one + columns, other);
  }
}

template <class E>
void MatrixBlocks<E>::factor_block(MatrixView<E> a, std::int64_t rows, std::int64_t columns, std::int32_t* pivots) const {
  std::vector<E>& memory = panel_memory<E>(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) memory[static_cast<std::size_t>(j * rows + i)] = a.data[i * a.row + j];
  kernel_.factor(memory.data(), rows, rows, columns, pivots);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) a.data[i * a.row + j] = memory[static_cast<std::size_t>(j * rows + i)];
}

// Toledo's recursion (1997), for at most as many columns as rows.
template <class E>
void MatrixBlocks<E>::factor_columns(MatrixView<E> a, std::int64_t rows, std::int64_t columns, std::int32_t* pivots) const {
  if (columns <= panel_columns || rows <= block_rows) return factor_block(a, rows, columns, pivots);
  const std::int64_t left = cut_of(columns, panel_columns), right = columns - left;
  factor_columns(a, rows, left, pivots);
  exchange_rows(a.from(0, left), right, {pivots, static_cast<std::size_t>(left)});
  solve_left(a, left, true, true, a.from(0, left), right);
  subtract_product(a.from(left, 0), a.from(0, left), a.from(left, left), rows - left, right, left);
  factor_columns(a.from(left, left), rows - left, right, pivots + left);
  exchange_rows(a.from(left, 0), left, {pivots + left, static_cast<std::size_t>(right)});
  for (std::int64_t k = left; k < columns; ++k) pivots[k] += static_cast<std::int32_t>(left);
}

template <class E>
void MatrixBlocks<E>::factor(MatrixView<E> a, std::int64_t rows, std::int64_t columns, std::int32_t* pivots) const {
  const std::int64_t steps = std::min(rows, columns);
  if (steps == 0) return;
  factor_columns(a, rows, steps, pivots);
  if (columns == steps) return;
  exchange_rows(a.from(0, steps), columns - steps, {pivots, static_cast<std::size_t>(steps)});
  solve_left(a, steps, true, true, a.from(0, steps), columns - steps);
}

/// The lower triangle of c -= a a^H, in squares: what is above the diagonal in those on the diagonal is overwritten.
template <class E>
void MatrixBlocks<E>::subtract_own_product(MatrixView<E> a, MatrixView<E> c, std::int64_t n, std::int64_t k) const {
  constexpr std::int64_t square = 192;
  for (std::int64_t j = 0; j < n; j += square)
    subtract_product(a.from(j, 0), a.from(j, 0).transposed(), c.from(j, j), n - j, std::min(square, n - j), k, true);
}

template <class E>
bool MatrixBlocks<E>::factor_definite(MatrixView<E> a, std::int64_t n) const {
  if (n == 0) return true;
  if (n <= block_rows) {
    E block[block_rows * block_rows];
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) block[j * block_rows + i] = a.data[i * a.row + j];
    const bool definite = kernel_.factor_definite(block, block_rows, n);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) a.data[i * a.row + j] = block[j * block_rows + i];
    return definite;
  }
  const std::int64_t cut = cut_of(n, block_rows);
  if (!factor_definite(a, cut)) return false;
  const MatrixView<E> below = a.from(cut, 0);
  const auto conjugate = [&] {
    if constexpr (!std::is_floating_point_v<E>)
      for (std::int64_t i = 0; i < n - cut; ++i)
        for (std::int64_t j = 0; j < cut; ++j) below.data[i * below.row + j].im = -below.data[i * below.row + j].im;
  };
  conjugate();  // X L^H = B is conj(X) L^T = conj(B)
  solve_right(a.transposed(), cut, true, false, below, n - cut);
  conjugate();
  subtract_own_product(below, a.from(cut, cut), n - cut, cut);
  return factor_definite(a.from(cut, cut), n - cut);
}

template class MatrixBlocks<float>;
template class MatrixBlocks<double>;
template class MatrixBlocks<Complex<float>>;
template class MatrixBlocks<Complex<double>>;

}  // namespace rlx::cpu
