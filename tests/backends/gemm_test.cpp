#include "backends/gemm_cases.h"

#include <array>

#include "base/small_float.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

template <class T>
class GemmOf : public testing::Test {};
using Types = testing::Types<float, double, Bf16, std::int8_t>;
TYPED_TEST_SUITE(GemmOf, Types);

TYPED_TEST(GemmOf, MatchesADoubleLoopOnRaggedSizesAndLayouts) {
  ThreadPool pool(2);
  std::mt19937 bits(7);
  std::uniform_int_distribution<std::int64_t> size(1, 70);
  const Layout layouts[] = {Layout::row_major, Layout::column_major, Layout::padded, Layout::spread};
  for (const auto& [name, kernel] : kernels_of<TypeParam>()) {
    for (unsigned trial = 0; trial < 120; ++trial) {
      const std::int64_t m = trial < 20 ? trial + 1 : size(bits), n = size(bits), k = size(bits);
      const Stored<TypeParam> a(1, m, k, layouts[trial % 4], trial), b(1, k, n, layouts[trial / 4 % 4], trial + 1000);
      GemmArgs<TypeParam> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = kernel};
      expect_product(args, run(args, pool), name);
    }
  }
}

TYPED_TEST(GemmOf, MatchesADoubleLoopOnSizesOfSeveralBlocksAndPasses) {
  ThreadPool pool(3);
  const std::int64_t sizes[][3] = {
      {300, 33, 40},  {5, 1100, 70},  {3, 40, 5000}, {1, 300, 2100}, {2, 130, 65},
      {130, 600, 20}, {300, 1, 2100}, {70, 7, 33},   {40, 16, 130}};  // m, n, k; the last, with few columns, are transposed
  for (const auto& [name, kernel] : kernels_of<TypeParam>()) {
    for (const auto& [m, n, k] : sizes) {
      const Stored<TypeParam> a(1, m, k, Layout::row_major, 1), b(1, k, n, Layout::column_major, 2);
      GemmArgs<TypeParam> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = kernel};
      expect_product(args, run(args, pool), name);
      const PackedB<TypeParam> packed = pack_b(b.matrix, 1, k, n, pool, *kernel);
      GemmArgs<TypeParam> with_packed = args;
      with_packed.packed_b = &packed;
      EXPECT_EQ(run(with_packed, pool), run(args, pool));
    }
  }
}

TYPED_TEST(GemmOf, GivesTheSameBitsAtAnyThreadCountAndBatchPosition) {
  const std::int64_t batch = 9, m = 37, n = 75, k = 2500;
  const Stored<TypeParam> a(batch, m, k, Layout::padded, 3), b(batch, k, n, Layout::row_major, 4);
  for (const auto& [name, kernel] : kernels_of<TypeParam>()) {
    GemmArgs<TypeParam> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = kernel};
    ThreadPool one(1);
    const std::vector<Sum<TypeParam>> whole = run(args, one);
    for (int threads : {2, 3, 5}) {
      ThreadPool pool(threads);
      EXPECT_EQ(run(args, pool), whole) << threads << " threads at " << name;
    }
    for (std::int64_t row : {0, 20, 36}) {  // one row alone takes other tiles
      GemmArgs<TypeParam> single = args;
      single.batch = single.m = 1;
      single.a.data = a.matrix.item(4) + row * a.matrix.row_stride;
      single.b.data = b.matrix.item(4);
      const auto first = whole.begin() + (4 * m + row) * n;
      EXPECT_EQ(run(single, one), std::vector<Sum<TypeParam>>(first, first + n)) << "row " << row << " at " << name;
    }
  }
}

/// One with few columns, and one whose last panel is not full, take kernels of their own.
TYPED_TEST(GemmOf, AColumnHasTheSameBitsAmongFewAndAmongMany) {
  ThreadPool pool(2);
  const std::int64_t most = 70, sizes[][2] = {{1, 40}, {16, 1}, {17, 3}, {31, 5}, {130, 16}, {300, 63}, {33, 2077}};  // m, k
  for (const auto& [name, kernel] : kernels_of<TypeParam>()) {
    for (const auto& [m, k] : sizes) {
      const Stored<TypeParam> a(1, m, k, Layout::row_major, 1), b(1, k, most, Layout::row_major, 2);
      GemmArgs<TypeParam> all{.m = m, .n = most, .k = k, .a = a.matrix, .b = b.matrix, .kernel = kernel};
      const std::vector<Sum<TypeParam>> wide = run(all, pool);
      for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 47}) {
        std::vector<Sum<TypeParam>> expected;
        for (std::int64_t row = 0; row < m; ++row)
          expected.insert(expected.end(), wide.begin() + row * most, wide.begin() + row * most + n);
        const PackedB<TypeParam> packed = pack_b(b.matrix, 1, k, n, pool, *kernel);
        GemmArgs<TypeParam> args = all;
        args.n = n;
        EXPECT_EQ(run(args, pool), expected) << name << " " << m << "x" << n << "x" << k;
        args.packed_b = &packed;
        EXPECT_EQ(run(args, pool), expected) << name << " " << m << "x" << n << "x" << k << ", packed";
        expect_epilogues_see<TypeParam>(expected, args, pool, name);
      }
    }
  }
}

TEST(Gemm, ThreePanelsForTwoThreadsAreCutByRows) {
  const Blocking cut = choose_blocking({.batch = 1,
                                        .m = 96,
                                        .k = 96,
                                        .panels = 3,
                                        .panel_cols = 32,
                                        .max_rows = 14,
                                        .row_step = 1,
                                        .depth_step = 1,
                                        .longest_pass = 2048,
                                        .element_bytes = 4},
                                       1 << 20, 2);
  EXPECT_EQ(cut.row_blocks, 2);
  EXPECT_EQ(cut.col_blocks, 1);
  EXPECT_EQ(cut.grain, 1);
}

TEST(Gemm, GivesTheSameBitsAtAllLevelsWithFusedMultiplyAdd) {
  if (best_level(cpu_features()) < CpuLevel::avx512) GTEST_SKIP() << "needs a CPU with AVX-512";
  ThreadPool pool(2);
  const Stored<float> a(1, 31, 300, Layout::row_major, 5), b(1, 300, 45, Layout::row_major, 6);
  GemmArgs<float> args{.m = 31, .n = 45, .k = 300, .a = a.matrix, .b = b.matrix, .kernel = &micro_kernel<float>(CpuLevel::avx512)};
  const std::vector<float> wide = run(args, pool);
  args.kernel = &micro_kernel<float>(CpuLevel::avx2);
  EXPECT_EQ(run(args, pool), wide);
}

/// Narrow weights are widened exactly, so the sums are those of floats.
template <class Weight>
void expect_the_bits_of_floats(const SmallFloat& format) {
  ThreadPool pool(2);
  for (const CpuLevel level : allowed_levels(cpu_features())) {
    if (!has_micro_kernel<Weight>(level)) continue;
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 37, 70}, {5, 16, 4100}, {40, 3, 33}, {129, 200, 65}, {7, 65, 1}})
      for (const Layout layout : {Layout::row_major, Layout::column_major, Layout::spread})
        for (const bool packed : {false, true}) {
          const Stored<float> a(2, m, k, layout, 1);
          Stored<float> wide(1, k, n, layout, 2);
          std::vector<Weight> narrow(wide.values.size());
          for (std::size_t i = 0; i < narrow.size(); ++i) {
            narrow[i].bits = static_cast<std::uint16_t>(encode(format, wide.values[i]));
            wide.values[i] = static_cast<float>(decode(format, narrow[i].bits));
          }
          GemmArgs<float> floats{
              .batch = 2, .m = m, .n = n, .k = k, .a = a.matrix, .b = wide.matrix, .kernel = &micro_kernel<float>(level)};
          floats.b.batch_stride = 0;
          GemmArgs<Weight> args{.batch = 2, .m = m, .n = n, .k = k, .a = a.matrix, .kernel = &micro_kernel<Weight>(level)};
          args.b = {narrow.data(), wide.matrix.row_stride, wide.matrix.col_stride, 0};
          const PackedB<Weight> panels = pack_b(args.b, 1, k, n, pool, micro_kernel<Weight>(level));
          if (packed) args.packed_b = &panels;
          EXPECT_EQ(run(args, pool), run(floats, pool)) << to_string(level) << " " << m << " x " << n << " x " << k;
        }
  }
}

TEST(Gemm, OfHalvesHasTheBitsOfFloats) { expect_the_bits_of_floats<F16>(f16_format); }
TEST(Gemm, OfBf16WeightsHasTheBitsOfFloats) { expect_the_bits_of_floats<Bf16Weight>(bf16_format); }

TYPED_TEST(GemmOf, HandsEveryElementToTheEpilogueOnce) {
  ThreadPool pool(3);
  const std::int64_t sizes[][4] = {{1, 1, 1, 1},  {1, 130, 600, 50}, {7, 40, 70, 33},  {2, 5, 1100, 2100},
                                   {3, 8, 20, 0}, {2, 100, 5, 70},   {1, 300, 1, 2100}};  // batch, m, n, k
  for (const auto& [name, kernel] : kernels_of<TypeParam>()) {
    for (const auto& [batch, m, n, k] : sizes) {
      const Stored<TypeParam> a(batch, m, k, Layout::row_major, 8), b(batch, k, n, Layout::column_major, 9);
      GemmArgs<TypeParam> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = kernel};
      const std::vector<Sum<TypeParam>> stored = run(args, pool);
      expect_epilogues_see<TypeParam>(stored, args, pool, name);
    }
  }
}

TEST(Gemm, ComputesAByAFunction) {
  ThreadPool pool(2);
  const std::int64_t batch = 3, m = 45, n = 50, k = 4100;  // more than one pass
  const Stored<float> a(batch, m, k, Layout::row_major, 10), b(1, k, n, Layout::row_major, 11);
  GemmArgs<float> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix};
  args.b.batch_stride = 0;
  const std::vector<float> plain = run(args, pool);
  args.a = {};
  args.compute_a_context = const_cast<Matrix<float>*>(&a.matrix);
  args.compute_a = [](void* context, float* block, std::int64_t stride, std::int64_t item, std::int64_t row0, std::int64_t rows,
                      std::int64_t k0, std::int64_t depth) {
    const auto& matrix = *static_cast<const Matrix<float>*>(context);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t step = 0; step < depth; ++step)
        block[r * stride + step] = matrix.item(item)[(row0 + r) * matrix.row_stride + k0 + step];
  };
  EXPECT_EQ(run(args, pool), plain);
  args.a_by_columns = true;
  args.compute_a = [](void* context, float* block, std::int64_t stride, std::int64_t item, std::int64_t row0, std::int64_t rows,
                      std::int64_t k0, std::int64_t depth) {
    const auto& matrix = *static_cast<const Matrix<float>*>(context);
    for (std::int64_t step = 0; step < depth; ++step)
      for (std::int64_t r = 0; r < rows; ++r) block[step * stride + r] = matrix.item(item)[(row0 + r) * matrix.row_stride + k0 + step];
  };
  EXPECT_EQ(run(args, pool), plain);
}

void expect_batches_by_offsets_and_packed(std::int64_t m, std::int64_t n) {
  ThreadPool pool(2);
  const std::int64_t batch = 5, k = 17;
  const Stored<float> a(batch, m, k, Layout::row_major, 12), b(batch, k, n, Layout::row_major, 13);
  GemmArgs<float> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix};
  const std::vector<float> plain = run(args, pool);
  expect_product(args, plain, "the best level");

  std::vector<std::int64_t> a_offsets, b_offsets, c_offsets;
  for (std::int64_t item = 0; item < batch; ++item) {
    a_offsets.push_back(item * a.matrix.batch_stride);
    b_offsets.push_back(item * b.matrix.batch_stride);
    c_offsets.push_back((batch - 1 - item) * m * n);  // the items of C in reverse
  }
  std::vector<float> c(plain.size());
  GemmArgs<float> by_offsets = args;
  by_offsets.a.batch_offsets = a_offsets.data();
  by_offsets.b.batch_offsets = b_offsets.data();
  by_offsets.c_batch_offsets = c_offsets.data();
  by_offsets.c = c.data();
  by_offsets.c_row_stride = n;
  gemm(by_offsets, pool);
  for (std::int64_t item = 0; item < batch; ++item) {
    EXPECT_TRUE(std::equal(c.begin() + c_offsets[item], c.begin() + c_offsets[item] + m * n, plain.begin() + item * m * n));
  }

  const PackedB<float> packed = pack_b(b.matrix, batch, k, n, pool);
  GemmArgs<float> with_packed = args;
  with_packed.packed_b = &packed;
  EXPECT_EQ(run(with_packed, pool), plain);
}

TEST(Gemm, TakesBatchesByOffsetsAndPackedBatches) {
  expect_batches_by_offsets_and_packed(20, 33);
  expect_batches_by_offsets_and_packed(70, 3);  // few columns: the product is transposed
}

/// So the pages of panels belong to the memory node of the worker that reads them.
TEST(Gemm, PanelsArePackedByTheWorkerThatMultipliesThem) {
  using Workers = std::vector<int>;  // by panel
  for (int threads : {1, 2, 3})
    for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{5, 3}, {1000, 700}, {4100, 512}, {333, 3000}}) {
      ThreadPool pool(threads);
      const Stored<float> a(1, 1, k, Layout::row_major, 1), b(1, k, n, Layout::row_major, 2);
      const PackedB<float> packed = pack_b(b.matrix, 1, k, n, pool);
      struct Seen {
        std::int64_t width;
        Workers multiplied;
      } seen{packed.kernel().panel_cols, Workers(static_cast<std::size_t>(packed.panels()))};
      Workers touched(seen.multiplied.size());
      for_each_panel<float>(packed, pool,
                            [&](std::int64_t, std::int64_t panel) { touched[static_cast<std::size_t>(panel)] = ThreadPool::worker(); });
      GemmArgs<float> args;
      args.m = 1, args.n = n, args.k = k;
      args.a = a.matrix;
      args.packed_b = &packed;
      args.epilogue_context = &seen;
      args.epilogue = [](void* context, float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t col0,
                         std::int64_t cols) {
        auto& [width, multiplied] = *static_cast<Seen*>(context);
        for (std::int64_t col = col0; col < col0 + cols; col += width)
          multiplied[static_cast<std::size_t>(col / width)] = ThreadPool::worker();
      };
      gemm(args, pool);
      EXPECT_EQ(touched, seen.multiplied) << threads << " threads, n " << n << ", k " << k;
    }
}

TEST(Gemm, PacksABThatAllItemsShareOnce) {
  ThreadPool pool(2);
  const std::int64_t batch = 30, m = 20, n = 33, k = 500;
  const Stored<float> a(batch, m, k, Layout::row_major, 12), b(2, k, n, Layout::row_major, 13);
  GemmArgs<float> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix};
  args.b.data = b.matrix.item(1);
  args.b.batch_stride = 0;
  const std::vector<std::int64_t> offsets(static_cast<std::size_t>(batch), b.matrix.batch_stride);
  GemmArgs<float> by_offsets = args;
  by_offsets.b.data = b.matrix.data;
  by_offsets.b.batch_offsets = offsets.data();
  for (int threads : {1, 2, 5}) EXPECT_EQ(gemm_workspace(by_offsets, threads), gemm_workspace(args, threads)) << threads;
  EXPECT_EQ(run(by_offsets, pool), run(args, pool));
}

// Where A is raised by 128, the starts of the columns leave 32 bits from a depth of 131072 on: what comes back is exact all the same.
TYPED_TEST(GemmOf, SumsADepthBeyondTheRangeOfStarts) {
  ThreadPool pool(2);
  const std::int64_t m = 2, n = 3, k = 140'000;
  Stored<TypeParam> a(1, m, k, Layout::row_major, 20), b(1, k, n, Layout::column_major, 21);
  if constexpr (std::is_same_v<TypeParam, std::int8_t>) {
    for (std::int8_t& x : a.values) x = static_cast<std::int8_t>(x % 2);  // so that the sums fit into 32 bits
    std::fill(b.values.begin(), b.values.begin() + 2 * k, std::int8_t{-128});
  }
  for (const auto& [name, kernel] : kernels_of<TypeParam>()) {
    GemmArgs<TypeParam> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = kernel};
    expect_product(args, run(args, pool), name);
  }
}

template <class T>
void expect_what_is_beside_c_is_left_alone(std::int64_t n) {
  ThreadPool pool(2);
  const std::int64_t m = 19, k = 30, stride = 50;
  const Stored<T> a(1, m, k, Layout::row_major, 14), b(1, k, n, Layout::row_major, 15);
  for (const auto& [name, kernel] : kernels_of<T>()) {
    const PackedB<T> packed = pack_b(b.matrix, 1, k, n, pool, *kernel);
    GemmArgs<T> args{.m = m, .n = n, .k = k, .a = a.matrix, .packed_b = &packed, .kernel = kernel};
    const std::vector<Sum<T>> plain = run(args, pool);
    std::vector<std::vector<Sum<T>>> results(6, std::vector<Sum<T>>(m * stride, -7));
    pool.parallel_for(6, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        GemmArgs<T> own = args;
        own.c = results[static_cast<std::size_t>(i)].data();
        own.c_row_stride = stride;
        gemm(own, pool);
      }
    });
    for (const std::vector<Sum<T>>& c : results) {
      for (std::int64_t at = 0; at < m * stride; ++at) {
        const std::int64_t row = at / stride, col = at % stride;
        ASSERT_EQ(c[static_cast<std::size_t>(at)], col < n ? plain[static_cast<std::size_t>(row * n + col)] : -7) << name;
      }
    }
  }
}

TYPED_TEST(GemmOf, LeavesWhatIsBesideCAloneAndWorksInsideALoop) {
  for (const std::int64_t n : {3, 45}) expect_what_is_beside_c_is_left_alone<TypeParam>(n);
}

TYPED_TEST(GemmOf, StaysInsideTheWorkspaceItAsksFor) {
  ThreadPool pool(2);
  const std::int64_t batch = 2, m = 60, n = 100, k = 90;
  const Stored<TypeParam> a(batch, m, k, Layout::row_major, 16), b(batch, k, n, Layout::row_major, 17);
  for (const auto& [name, kernel] : kernels_of<TypeParam>()) {
    GemmArgs<TypeParam> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = kernel};
    const std::vector<Sum<TypeParam>> plain = run(args, pool);
    for (bool by_columns : {false, true}) {
      Sink<TypeParam> sink(args, by_columns);
      args.epilogue = Sink<TypeParam>::store;
      args.epilogue_context = &sink;
      args.epilogue_by_columns = by_columns;
      const std::size_t bytes = gemm_workspace(args, pool.size());
      constexpr std::byte mark{0x5a};
      std::vector<std::byte> memory(bytes + 3 * 64, mark);
      const std::size_t start = 64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
      args.workspace = memory.data() + start;
      gemm(args, pool);
      EXPECT_EQ(sink.values, plain) << name;
      for (std::size_t i = 0; i < start; ++i) ASSERT_EQ(memory[i], mark) << name;
      for (std::size_t i = start + bytes; i < memory.size(); ++i) ASSERT_EQ(memory[i], mark) << name;
      args.epilogue = nullptr;
    }
  }
}

TYPED_TEST(GemmOf, GivesZerosWithoutDepthAndNothingWithoutElements) {
  ThreadPool pool(2);
  using Sums = std::vector<Sum<TypeParam>>;
  for (const auto& [name, kernel] : kernels_of<TypeParam>()) {
    EXPECT_EQ(run(GemmArgs<TypeParam>{.m = 5, .n = 40, .kernel = kernel}, pool), Sums(200, 0)) << name;
    EXPECT_EQ(run(GemmArgs<TypeParam>{.m = 0, .n = 40, .k = 3, .kernel = kernel}, pool), Sums()) << name;
    EXPECT_EQ(run(GemmArgs<TypeParam>{.batch = 0, .m = 2, .n = 40, .k = 3, .kernel = kernel}, pool), Sums()) << name;
  }
}

TEST(Gemm, RefusesBadSizesAndMissingMatrices) {
  ThreadPool pool(2);
  const std::vector<float> values(64);
  std::vector<float> c(64);
  const Matrix<float> matrix{values.data(), 8, 1};
  const GemmArgs<float> good{.m = 8, .n = 8, .k = 8, .a = matrix, .b = matrix, .c = c.data(), .c_row_stride = 8};
  EXPECT_NO_THROW(gemm(good, pool));
  for (auto size : {&GemmArgs<float>::batch, &GemmArgs<float>::m, &GemmArgs<float>::n, &GemmArgs<float>::k}) {
    GemmArgs<float> bad = good;
    bad.*size = -1;
    EXPECT_THROW(gemm(bad, pool), Error);
    EXPECT_THROW(gemm_workspace(bad, 2), Error);
    bad.*size = std::numeric_limits<std::int64_t>::max() - 5;
    EXPECT_THROW(gemm_workspace(bad, 2), Error);
  }
  GemmArgs<float> bad = good;
  bad.c = nullptr;
  EXPECT_THROW(gemm(bad, pool), Error);
  bad = good, bad.a.data = nullptr;
  EXPECT_THROW(gemm(bad, pool), Error);
  bad = good, bad.b.data = nullptr;
  EXPECT_THROW(gemm(bad, pool), Error);
  const PackedB<float> other = pack_b(matrix, 1, 8, 7, pool);
  bad = good, bad.packed_b = &other;
  EXPECT_THROW(gemm(bad, pool), Error);
  EXPECT_THROW(PackedB<float>(1, -1, 4), Error);
  EXPECT_THROW(PackedB<float>(1, std::numeric_limits<std::int64_t>::max(), 4), Error);
}

}  // namespace
}  // namespace rlx::cpu
