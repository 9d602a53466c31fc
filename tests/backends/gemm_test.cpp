#include "backends/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "rlx/error.h"

namespace rlx::cpu {
namespace {

std::vector<CpuLevel> machine_levels() {
  std::vector<CpuLevel> levels;
  for (CpuLevel level : {CpuLevel::portable, CpuLevel::avx2, CpuLevel::avx512, CpuLevel::amx}) {
    if (level <= best_level(cpu_features())) levels.push_back(level);
  }
  return levels;
}

template <class T>
std::vector<CpuLevel> levels_of() {
  std::vector<CpuLevel> levels = machine_levels();
  std::erase_if(levels, [](CpuLevel level) { return !has_micro_kernel<T>(level); });
  return levels;
}

float value_of(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
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

/// The same product in wider arithmetic, one element. `magnitude` is the sum of |a * b|.
template <class T>
struct Expected {
  long double value = 0, magnitude = 0;
  Expected(const GemmArgs<T>& args, std::int64_t batch, std::int64_t row, std::int64_t col) {
    for (std::int64_t k = 0; k < args.k; ++k) {
      const auto a = value_of(args.a.item(batch)[row * args.a.row_stride + k * args.a.col_stride]);
      const auto b = value_of(args.b.item(batch)[k * args.b.row_stride + col * args.b.col_stride]);
      value += static_cast<long double>(a) * b;
      magnitude += std::abs(static_cast<long double>(a) * b);
    }
  }
};

/// Each of the k steps rounds once (fused) or twice, each time by eps / 2 of a partial sum that is at most the sum of magnitudes. Sums of
/// integers are exact: their eps is 0.
template <class T>
void expect_product(const GemmArgs<T>& args, const std::vector<Sum<T>>& c) {
  for (std::int64_t at = 0; at < args.batch * args.m * args.n; ++at) {
    const std::int64_t batch = at / (args.m * args.n), row = at / args.n % args.m, col = at % args.n;
    const Expected<T> expected(args, batch, row, col);
    const auto bound = static_cast<long double>(args.k) * std::numeric_limits<Sum<T>>::epsilon() * expected.magnitude;
    ASSERT_LE(std::abs(c[static_cast<std::size_t>(at)] - expected.value), bound)
        << "batch " << batch << " row " << row << " col " << col << " of " << args.m << "x" << args.n << "x" << args.k << " at "
        << to_string(args.level);
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
struct Sink {
  std::vector<float> values;
  std::vector<int> counts;
  std::int64_t m, n;
  bool by_columns;
  Sink(const GemmArgs<float>& args, bool by_columns)
      : values(static_cast<std::size_t>(args.batch * args.m * args.n)),
        counts(values.size()),
        m(args.m),
        n(args.n),
        by_columns(by_columns) {}

  static void store(void* context, float* tile, std::int64_t tile_stride, std::int64_t batch, std::int64_t row0, std::int64_t rows,
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

template <class T>
class GemmOf : public testing::Test {};
using Types = testing::Types<float, double, Bf16, std::int8_t>;
TYPED_TEST_SUITE(GemmOf, Types);

TYPED_TEST(GemmOf, MatchesADoubleLoopOnRaggedSizesAndLayouts) {
  ThreadPool pool(2);
  std::mt19937 bits(7);
  std::uniform_int_distribution<std::int64_t> size(1, 70);
  const Layout layouts[] = {Layout::row_major, Layout::column_major, Layout::padded, Layout::spread};
  for (CpuLevel level : levels_of<TypeParam>()) {
    for (unsigned trial = 0; trial < 120; ++trial) {
      const std::int64_t m = trial < 20 ? trial + 1 : size(bits), n = size(bits), k = size(bits);
      const Stored<TypeParam> a(1, m, k, layouts[trial % 4], trial), b(1, k, n, layouts[trial / 4 % 4], trial + 1000);
      GemmArgs<TypeParam> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .level = level};
      expect_product(args, run(args, pool));
    }
  }
}

TYPED_TEST(GemmOf, MatchesADoubleLoopOnSizesOfSeveralBlocksAndPasses) {
  ThreadPool pool(3);
  const std::int64_t sizes[][3] = {
      {300, 33, 40},  {5, 1100, 70},  {3, 40, 5000}, {1, 300, 2100}, {2, 130, 65},
      {130, 600, 20}, {300, 1, 2100}, {70, 7, 33},   {40, 16, 130}};  // m, n, k; the last, with few columns, are transposed
  for (CpuLevel level : levels_of<TypeParam>()) {
    for (const auto& [m, n, k] : sizes) {
      const Stored<TypeParam> a(1, m, k, Layout::row_major, 1), b(1, k, n, Layout::column_major, 2);
      GemmArgs<TypeParam> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .level = level};
      expect_product(args, run(args, pool));
      const PackedB<TypeParam> packed = pack_b(b.matrix, 1, k, n, pool, level);
      GemmArgs<TypeParam> with_packed = args;
      with_packed.packed_b = &packed;
      EXPECT_EQ(run(with_packed, pool), run(args, pool));
    }
  }
}

TYPED_TEST(GemmOf, GivesTheSameBitsAtAnyThreadCountAndBatchPosition) {
  const std::int64_t batch = 9, m = 37, n = 75, k = 2500;
  const Stored<TypeParam> a(batch, m, k, Layout::padded, 3), b(batch, k, n, Layout::row_major, 4);
  for (CpuLevel level : levels_of<TypeParam>()) {
    GemmArgs<TypeParam> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .level = level};
    ThreadPool one(1);
    const std::vector<Sum<TypeParam>> whole = run(args, one);
    for (int threads : {2, 3, 5}) {
      ThreadPool pool(threads);
      EXPECT_EQ(run(args, pool), whole) << threads << " threads at " << to_string(level);
    }
    for (std::int64_t row : {0, 20, 36}) {  // one row alone takes other tiles
      GemmArgs<TypeParam> single = args;
      single.batch = single.m = 1;
      single.a.data = a.matrix.item(4) + row * a.matrix.row_stride;
      single.b.data = b.matrix.item(4);
      const auto first = whole.begin() + (4 * m + row) * n;
      EXPECT_EQ(run(single, one), std::vector<Sum<TypeParam>>(first, first + n)) << "row " << row << " at " << to_string(level);
    }
  }
}

TEST(Gemm, GivesTheSameBitsAtAllLevelsWithFusedMultiplyAdd) {
  if (best_level(cpu_features()) < CpuLevel::avx512) GTEST_SKIP() << "needs a CPU with AVX-512";
  ThreadPool pool(2);
  const Stored<float> a(1, 31, 300, Layout::row_major, 5), b(1, 300, 45, Layout::row_major, 6);
  GemmArgs<float> args{.m = 31, .n = 45, .k = 300, .a = a.matrix, .b = b.matrix, .level = CpuLevel::avx512};
  const std::vector<float> wide = run(args, pool);
  args.level = CpuLevel::avx2;
  EXPECT_EQ(run(args, pool), wide);
}

TEST(Gemm, HandsEveryElementToTheEpilogueOnce) {
  ThreadPool pool(3);
  const std::int64_t sizes[][4] = {{1, 1, 1, 1},  {1, 130, 600, 50}, {7, 40, 70, 33},  {2, 5, 1100, 2100},
                                   {3, 8, 20, 0}, {2, 100, 5, 70},   {1, 300, 1, 2100}};  // batch, m, n, k
  for (CpuLevel level : machine_levels()) {
    for (const auto& [batch, m, n, k] : sizes) {
      const Stored<float> a(batch, m, k, Layout::row_major, 8), b(batch, k, n, Layout::column_major, 9);
      GemmArgs<float> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .level = level};
      const std::vector<float> stored = run(args, pool);
      for (bool by_columns : {false, true}) {
        Sink sink(args, by_columns);
        args.epilogue = Sink::store;
        args.epilogue_context = &sink;
        args.epilogue_by_columns = by_columns;
        gemm(args, pool);
        EXPECT_EQ(sink.counts, std::vector<int>(sink.counts.size(), 1));
        EXPECT_EQ(sink.values, stored);
        args.epilogue = nullptr;
      }
    }
  }
}

TEST(Gemm, PacksAThroughAFunction) {
  ThreadPool pool(2);
  const std::int64_t batch = 3, m = 45, n = 50, k = 4100;  // more than one pass
  const Stored<float> a(batch, m, k, Layout::row_major, 10), b(1, k, n, Layout::row_major, 11);
  GemmArgs<float> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix};
  args.b.batch_stride = 0;
  const std::vector<float> plain = run(args, pool);
  args.a = {};
  args.pack_a_context = const_cast<Matrix<float>*>(&a.matrix);
  args.pack_a = [](void* context, float* panel, std::int64_t item, std::int64_t row0, std::int64_t rows, std::int64_t k0,
                   std::int64_t depth) {
    const auto& matrix = *static_cast<const Matrix<float>*>(context);
    for (std::int64_t step = 0; step < depth; ++step) {
      for (std::int64_t r = 0; r < rows; ++r) panel[step * rows + r] = matrix.item(item)[(row0 + r) * matrix.row_stride + k0 + step];
    }
  };
  EXPECT_EQ(run(args, pool), plain);
}

void expect_batches_by_offsets_and_packed(std::int64_t m, std::int64_t n) {
  ThreadPool pool(2);
  const std::int64_t batch = 5, k = 17;
  const Stored<float> a(batch, m, k, Layout::row_major, 12), b(batch, k, n, Layout::row_major, 13);
  GemmArgs<float> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix};
  const std::vector<float> plain = run(args, pool);
  expect_product(args, plain);

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
  for (CpuLevel level : levels_of<TypeParam>()) {
    GemmArgs<TypeParam> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .level = level};
    expect_product(args, run(args, pool));
  }
}

TEST(Gemm, LeavesWhatIsBesideCAloneAndWorksInsideALoop) {
  ThreadPool pool(2);
  const std::int64_t m = 19, n = 45, k = 30, stride = 50;
  const Stored<float> a(1, m, k, Layout::row_major, 14), b(1, k, n, Layout::row_major, 15);
  GemmArgs<float> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix};
  const std::vector<float> plain = run(args, pool);
  std::vector<std::vector<float>> results(6, std::vector<float>(m * stride, -7.0f));
  pool.parallel_for(6, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      GemmArgs<float> own = args;
      own.c = results[static_cast<std::size_t>(i)].data();
      own.c_row_stride = stride;
      gemm(own, pool);
    }
  });
  for (const std::vector<float>& c : results) {
    for (std::int64_t at = 0; at < m * stride; ++at) {
      const std::int64_t row = at / stride, col = at % stride;
      ASSERT_EQ(c[static_cast<std::size_t>(at)], col < n ? plain[static_cast<std::size_t>(row * n + col)] : -7.0f);
    }
  }
}

TEST(Gemm, StaysInsideTheWorkspaceItAsksFor) {
  ThreadPool pool(2);
  const std::int64_t batch = 2, m = 60, n = 100, k = 90;
  const Stored<float> a(batch, m, k, Layout::row_major, 16), b(batch, k, n, Layout::row_major, 17);
  GemmArgs<float> args{.batch = batch, .m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix};
  const std::vector<float> plain = run(args, pool);
  for (bool by_columns : {false, true}) {
    Sink sink(args, by_columns);
    args.epilogue = Sink::store;
    args.epilogue_context = &sink;
    args.epilogue_by_columns = by_columns;
    const std::size_t bytes = gemm_workspace(args, pool.size());
    constexpr std::byte mark{0x5a};
    std::vector<std::byte> memory(bytes + 3 * 64, mark);
    const std::size_t start = 64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
    args.workspace = memory.data() + start;
    gemm(args, pool);
    EXPECT_EQ(sink.values, plain);
    for (std::size_t i = 0; i < start; ++i) ASSERT_EQ(memory[i], mark);
    for (std::size_t i = start + bytes; i < memory.size(); ++i) ASSERT_EQ(memory[i], mark);
  }
}

TEST(Gemm, GivesZerosWithoutDepthAndNothingWithoutElements) {
  ThreadPool pool(2);
  EXPECT_EQ(run(GemmArgs<float>{.m = 5, .n = 40}, pool), std::vector<float>(200, 0.0f));
  EXPECT_EQ(run(GemmArgs<float>{.m = 0, .n = 40, .k = 3}, pool), std::vector<float>());
  EXPECT_EQ(run(GemmArgs<float>{.batch = 0, .m = 2, .n = 40, .k = 3}, pool), std::vector<float>());
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

TEST(CpuLevel, ObeysTheWordAndNamesWhatIsAllowed) {
  CpuFeatures features;
  EXPECT_EQ(choose_level(features, std::nullopt), CpuLevel::portable);
  features.avx2 = features.fma = true;
  EXPECT_EQ(choose_level(features, std::nullopt), CpuLevel::avx2);
  EXPECT_EQ(choose_level(features, "portable"), CpuLevel::portable);
  for (const char* word : {"avx512", "AVX2", "sse", ""}) {
    try {
      choose_level(features, word);
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("allowed: portable, avx2)"), std::string::npos) << error.what();
    }
  }
  features.avx512f = features.avx512bw = features.avx512dq = true;
  EXPECT_EQ(best_level(features), CpuLevel::avx2);
  features.avx512vl = true;
  EXPECT_EQ(best_level(features), CpuLevel::avx512);
}

CpuFeatures with_amx(bool allowed) {
  CpuFeatures features{.name = "a CPU"};
  features.avx2 = features.fma = true;
  features.avx512f = features.avx512bw = features.avx512dq = features.avx512vl = true;
  features.amx_tile = features.amx_bf16 = features.amx_int8 = true;
  features.tiles_allowed = allowed;
  return features;
}

std::string message_of_word(const CpuFeatures& features, std::string_view word) {
  try {
    choose_level(features, word);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CpuLevel, IsAmxWhereTheSystemAllowsTiles) {
  const CpuFeatures features = with_amx(true);
  EXPECT_EQ(choose_level(features, std::nullopt), CpuLevel::amx);
  EXPECT_EQ(choose_level(features, "amx"), CpuLevel::amx);
  EXPECT_EQ(choose_level(features, "avx512"), CpuLevel::avx512);
  EXPECT_EQ(describe(features, CpuLevel::amx).substr(0, 11), "a CPU, amx ");
  EXPECT_EQ(describe(features, CpuLevel::avx512).substr(0, 42), "a CPU, avx512 (RLX_CPU; the best is amx) a");
  for (auto instructions : {&CpuFeatures::amx_tile, &CpuFeatures::amx_bf16, &CpuFeatures::amx_int8, &CpuFeatures::avx512bw}) {
    CpuFeatures without = features;
    without.*instructions = false;
    EXPECT_LT(best_level(without), CpuLevel::amx);
    EXPECT_NE(message_of_word(without, "amx").find("'amx' is not a level of this CPU, a CPU (allowed: portable"), std::string::npos);
  }
}

TEST(CpuLevel, SaysThatTheSystemRefusesTiles) {
  const CpuFeatures features = with_amx(false);
  EXPECT_EQ(choose_level(features, std::nullopt), CpuLevel::avx512);
  EXPECT_NE(describe(features, CpuLevel::avx512).find("avx512 (the system refuses AMX's tile registers) amx_bf16"), std::string::npos)
      << describe(features, CpuLevel::avx512);
  const std::string message = message_of_word(features, "amx");
  EXPECT_NE(message.find("Linux 5.16"), std::string::npos) << message;
  EXPECT_NE(message.find(": portable, avx2, avx512)"), std::string::npos) << message;
  EXPECT_NE(message_of_word(features, "amx2").find("is not a level of this CPU"), std::string::npos);
}

TEST(CpuLevel, DetectsPlausibleCaches) {
  const CpuFeatures& features = cpu_features();
  EXPECT_GE(features.l1_bytes, 8 << 10);
  EXPECT_GE(features.l2_bytes, features.l1_bytes);
  EXPECT_FALSE(describe(features, cpu_level()).empty());
}

}  // namespace
}  // namespace rlx::cpu
