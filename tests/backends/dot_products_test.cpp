// Products with few columns and long rows: their sums at every level of this machine's CPU against sums in another type, and the order of
// the sums, which nothing but the depth decides.
#include "backends/cpu/gemm/dot_products.h"

#include "backends/gemm_cases.h"

namespace rlx::cpu {
namespace {

template <class T>
class DotProductsOf : public testing::Test {};
using Elements = testing::Types<float, double, Bf16, std::int8_t>;
TYPED_TEST_SUITE(DotProductsOf, Elements);

template <class T>
std::vector<NamedKernel<T>> kernels_with_dots() {
  std::vector<NamedKernel<T>> kernels = kernels_of<T>();
  std::erase_if(kernels, [](const NamedKernel<T>& named) { return !named.kernel->dots[1]; });
  return kernels;
}

template <class T>
GemmArgs<T> args_of(const Stored<T>& a, const Stored<T>& b, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
                    const MicroKernel<T>& kernel) {
  return {.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = &kernel};
}

template <class T>
std::vector<Sum<T>> run_dots(GemmArgs<T> args, ThreadPool& pool) {
  std::vector<Sum<T>> c(static_cast<std::size_t>(args.batch * args.m * args.n), Sum<T>{77});
  args.c = c.data(), args.c_row_stride = args.n, args.c_batch_stride = args.m * args.n;
  dot_products(args, pool);
  return c;
}

constexpr std::int64_t shapes[][4] = {{1, 1, 1, 1000},  {1, 1, 8, 64},    {2, 5, 3, 77},  {1, 33, 5, 129},
                                      {3, 4, 2, 65},    {1, 300, 7, 100}, {1, 2, 6, 200}, {1, 3, 2, 70000},
                                      {2, 9, 1, 65536}, {1, 5, 8, 196700}};  // batch, m, n, k

TYPED_TEST(DotProductsOf, AgreeWithSumsInDoubles) {
  using T = TypeParam;
  ThreadPool pool(2);
  for (const auto& [name, kernel] : kernels_with_dots<T>())
    for (const auto& [batch, m, n, k] : shapes) {
      const Stored<T> a(batch, m, k, Layout::row_major, 1), b(batch, k, n, Layout::column_major, 2);
      const std::vector<Sum<T>> c = run_dots(args_of(a, b, batch, m, n, k, *kernel), pool);
      for (std::size_t i = 0; i < c.size(); ++i) {
        const auto item = static_cast<std::int64_t>(i) / (m * n), row = static_cast<std::int64_t>(i) / n % m,
                   col = static_cast<std::int64_t>(i) % n;
        double sum = 0, size = 0;
        for (std::int64_t step = 0; step < k; ++step) {
          const double product = static_cast<double>(value_of(a.matrix.item(item)[row * a.matrix.row_stride + step])) *
                                 static_cast<double>(value_of(b.matrix.item(item)[step + col * b.matrix.col_stride]));
          sum += product, size += std::abs(product);
        }
        // A lane rounds once for each 64 bytes of a row, 65536 steps at a time; what is left are a few additions, and for doubles the sum
        // here.
        const double lines = static_cast<double>(std::min<std::int64_t>(k, 65536) * static_cast<std::int64_t>(sizeof(T)) / 64 + 16);
        const double own = std::is_same_v<T, double> ? static_cast<double>(k) : 0;
        const double unit = std::numeric_limits<Sum<T>>::is_integer ? 0 : static_cast<double>(std::numeric_limits<Sum<T>>::epsilon());
        ASSERT_NEAR(static_cast<double>(c[i]), sum, (lines + own) * unit * size) << name << " " << m << "x" << n << "x" << k << " at " << i;
      }
    }
}

TEST(DotProducts, OfIntegersWrapAround) {
  const std::int64_t k = 196700;  // of sums beyond 2^31
  const std::vector<std::int8_t> least(static_cast<std::size_t>(k), -128);
  ThreadPool pool(2);
  for (const auto& [name, kernel] : kernels_with_dots<std::int8_t>()) {
    const Matrix<std::int8_t> row{least.data(), k, 1, 0}, column{least.data(), 1, k, 0};
    std::int32_t c = 0;
    dot_products(
        GemmArgs<std::int8_t>{
            .m = 1, .n = 1, .k = k, .a = row, .b = column, .c = &c, .c_row_stride = 1, .c_batch_stride = 1, .kernel = kernel},
        pool);
    EXPECT_EQ(c, static_cast<std::int32_t>(static_cast<std::uint32_t>(k) * 16384)) << name;
  }
}

TYPED_TEST(DotProductsOf, HaveTheSameBitsAloneAmongOthersAndOnAnyNumberOfThreads) {
  using T = TypeParam;
  ThreadPool pool(3), alone(1);
  for (const auto& [name, kernel] : kernels_with_dots<T>())
    for (const auto& [batch, m, n, k] : shapes) {
      const Stored<T> a(batch, m, k, Layout::row_major, 3), b(batch, k, n, Layout::column_major, 4);
      const GemmArgs<T> all = args_of(a, b, batch, m, n, k, *kernel);
      const std::vector<Sum<T>> c = run_dots(all, pool);
      EXPECT_EQ(run_dots(all, alone), c) << name;
      GemmArgs<T> one = all;
      one.batch = one.m = one.n = 1;
      one.a.data += (m - 1) * a.matrix.row_stride, one.b.data += (n - 1) * b.matrix.col_stride;
      EXPECT_EQ(run_dots(one, pool)[0], c[static_cast<std::size_t>(m * n - 1)]) << name << " " << m << "x" << n << "x" << k;
    }
}

TYPED_TEST(DotProductsOf, HaveTheSameBitsAtAllLevelsWithFusedMultiplyAdd) {
  using T = TypeParam;
  if (best_level(cpu_features()) < CpuLevel::avx512) GTEST_SKIP() << "needs a CPU with AVX-512";
  if constexpr (!std::is_same_v<T, Bf16>) {
    ThreadPool pool(2);
    for (const auto& [batch, m, n, k] : shapes) {
      const Stored<T> a(batch, m, k, Layout::row_major, 5), b(batch, k, n, Layout::column_major, 6);
      GemmArgs<T> args = args_of(a, b, batch, m, n, k, micro_kernel<T>(CpuLevel::avx512));
      const std::vector<Sum<T>> wide = run_dots(args, pool);
      args.kernel = &micro_kernel<T>(CpuLevel::avx2);
      EXPECT_EQ(run_dots(args, pool), wide);
    }
  } else {
    EXPECT_FALSE(has_micro_kernel<Bf16>(CpuLevel::avx2));
  }
}

/// By rows and by columns.
TYPED_TEST(DotProductsOf, HandsEveryElementToTheEpilogueOnce) {
  using T = TypeParam;
  ThreadPool pool(2);
  for (const auto& [name, kernel] : kernels_with_dots<T>())
    for (const auto& [batch, m, n, k] : shapes) {
      const Stored<T> a(batch, m, k, Layout::row_major, 7), b(batch, k, n, Layout::column_major, 8);
      GemmArgs<T> args = args_of(a, b, batch, m, n, k, *kernel);
      const std::vector<Sum<T>> stored = run_dots(args, pool);
      expect_epilogues_see<T>(stored, args, pool, name, dot_products<T>);
    }
}

TYPED_TEST(DotProductsOf, ColumnsOfAnyLayoutArePutSideBySide) {
  using T = TypeParam;
  const std::int64_t k = 70, n = 5;
  const Stored<T> rows(1, k, n, Layout::row_major, 9);
  Columns<T> columns(k, n);
  columns.pack(rows.matrix);
  for (std::int64_t step = 0; step < k; ++step)
    for (std::int64_t col = 0; col < n; ++col)
      EXPECT_EQ(value_of(columns.matrix().item(0)[step + col * columns.matrix().col_stride]),
                value_of(rows.matrix.item(0)[step * rows.matrix.row_stride + col * rows.matrix.col_stride]));
}

}  // namespace
}  // namespace rlx::cpu
