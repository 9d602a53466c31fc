#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/tile_registers.h"

// Products for tests: kernels, operands of any layout, and what is expected of C.

namespace rlx::cpu {

template <class T>
struct NamedKernel {
  std::string name;
  const MicroKernel<T>* kernel;
};

/// The kernels of all levels of this machine, and for narrow elements that of AMX on registers in software.
template <class T>
std::vector<NamedKernel<T>> kernels_of() {
  std::vector<NamedKernel<T>> kernels;
  for (CpuLevel level : allowed_levels(cpu_features())) {
    if (has_micro_kernel<T>(level)) kernels.push_back({std::string(to_string(level)), &micro_kernel<T>(level)});
  }
  if constexpr (!std::is_same_v<T, Packed<T>>) kernels.push_back({"amx in software", &test::model_kernel<T>});
  return kernels;
}

inline float value_of(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
template <class T>
T value_of(T x) {
  return x;
}

/// Floats in -1..1, and every 8-bit integer.
template <class T>
T random_value(std::mt19937& bits) {
  if constexpr (std::is_same_v<T, std::int8_t>) return static_cast<T>(bits());
  else if constexpr (std::is_same_v<T, Bf16>)
    return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(random_value<float>(bits)) >> 16)};
  else return std::uniform_real_distribution<T>(-1, 1)(bits);
}

template <class T>
std::vector<T> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = random_value<T>(bits);
  return values;
}

/// Storage of A or B: rows or columns side by side, or neither.
enum class Layout { row_major, column_major, padded, spread };

template <class T>
struct Stored {
  std::vector<T> values;
  Matrix<T> matrix;

  Stored(std::int64_t batch, std::int64_t rows, std::int64_t cols, Layout layout, unsigned seed) {
    std::int64_t row_stride = cols, col_stride = 1;
    if (layout == Layout::column_major) row_stride = 1, col_stride = rows;
    if (layout == Layout::padded) row_stride = cols + 3;
    if (layout == Layout::spread) row_stride = 2 * cols + 1, col_stride = 2;
    const std::int64_t item = rows * row_stride + cols * col_stride;
    values = random_values<T>(batch * item, seed);
    matrix = {values.data(), row_stride, col_stride, item};
  }
};

template <class T>
auto element_of_a(const GemmArgs<T>& args, std::int64_t batch, std::int64_t row, std::int64_t k) {
  return value_of(args.a.item(batch)[row * args.a.row_stride + k * args.a.col_stride]);
}
template <class T>
auto element_of_b(const GemmArgs<T>& args, std::int64_t batch, std::int64_t k, std::int64_t col) {
  return value_of(args.b.item(batch)[k * args.b.row_stride + col * args.b.col_stride]);
}

/// The same product in wider arithmetic, one element. `magnitude` is the sum of |a * b|.
template <class T>
struct Expected {
  using Wide = std::conditional_t<std::is_same_v<T, double>, long double, double>;  // some CPUs compute long double by functions
  Wide value = 0, magnitude = 0;
  Expected(const GemmArgs<T>& args, std::int64_t batch, std::int64_t row, std::int64_t col) {
    for (std::int64_t k = 0; k < args.k; ++k) {
      const Wide product = static_cast<Wide>(element_of_a(args, batch, row, k)) * element_of_b(args, batch, k, col);
      value += product;
      magnitude += std::abs(product);
    }
  }
};

/// Each of the k steps rounds once (fused) or twice, each time by eps / 2 of a partial sum that is at most the sum of magnitudes; or each
/// pair of them twice, by eps (bf16 on ARM). Sums of integers are exact: their eps is 0.
template <class T>
void expect_product(const GemmArgs<T>& args, const std::vector<Sum<T>>& c, const std::string& kernel) {
  for (std::int64_t at = 0; at < args.batch * args.m * args.n; ++at) {
    const std::int64_t batch = at / (args.m * args.n), row = at / args.n % args.m, col = at % args.n;
    const Expected<T> expected(args, batch, row, col);
    const auto bound = static_cast<double>(args.k) * std::numeric_limits<Sum<T>>::epsilon() * expected.magnitude;
    ASSERT_LE(std::abs(c[static_cast<std::size_t>(at)] - expected.value), bound)
        << "batch " << batch << " row " << row << " col " << col << " of " << args.m << "x" << args.n << "x" << args.k << " at " << kernel;
  }
}

/// A contiguous C that is filled with NaN or the lowest integer first, so that what is not written shows.
template <class T>
std::vector<Sum<T>> run(GemmArgs<T> args, ThreadPool& pool) {
  using Limits = std::numeric_limits<Sum<T>>;
  std::vector<Sum<T>> c(static_cast<std::size_t>(args.batch * args.m * args.n),
                        Limits::has_quiet_NaN ? Limits::quiet_NaN() : Limits::min());
  args.c = c.data();
  args.c_row_stride = args.n;
  args.c_batch_stride = args.m * args.n;
  gemm(args, pool);
  return c;
}

/// Counts how often the epilogue gets each element, and stores it.
template <class T>
struct Sink {
  std::vector<Sum<T>> values;
  std::vector<int> counts;
  std::int64_t m, n;
  bool by_columns;
  Sink(const GemmArgs<T>& args, bool by_columns)
      : values(static_cast<std::size_t>(args.batch * args.m * args.n)),
        counts(values.size()),
        m(args.m),
        n(args.n),
        by_columns(by_columns) {}

  static void store(void* context, Sum<T>* tile, std::int64_t tile_stride, std::int64_t batch, std::int64_t row0, std::int64_t rows,
                    std::int64_t col0, std::int64_t cols) {
    Sink& sink = *static_cast<Sink*>(context);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const auto at = static_cast<std::size_t>((batch * sink.m + row0 + r) * sink.n + col0 + c);
        sink.values[at] = sink.by_columns ? tile[c * tile_stride + r] : tile[r * tile_stride + c];
        ++sink.counts[at];
      }
    }
  }
};

/// Each element once, in blocks of rows and of columns, from `multiply`.
template <class T>
void expect_epilogues_see(const std::vector<Sum<T>>& expected, GemmArgs<T> args, ThreadPool& pool, const std::string& name,
                          void (*multiply)(const GemmArgs<T>&, ThreadPool&) = gemm<T>) {
  for (const bool by_columns : {false, true}) {
    Sink<T> sink(args, by_columns);
    args.epilogue = Sink<T>::store;
    args.epilogue_context = &sink;
    args.epilogue_by_columns = by_columns;
    multiply(args, pool);
    EXPECT_EQ(sink.counts, std::vector<int>(sink.counts.size(), 1)) << name;
    EXPECT_EQ(sink.values, expected) << name;
  }
}

}  // namespace rlx::cpu
