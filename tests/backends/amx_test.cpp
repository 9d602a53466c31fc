// Products on AMX's tile registers: the model of the registers itself, the bits that the kernel gives on it, and the same from the real
// instructions.
#include <gtest/gtest.h>

#include "backends/gemm_cases.h"
#include "backends/tile_trap.h"

namespace rlx::cpu {
namespace {

using test::ModelTiles;
using test::TileRegisters;

TileConfig config_of(std::initializer_list<std::array<int, 2>> shapes) {  // rows, bytes of a row
  TileConfig config;
  std::size_t tile = 0;
  for (const auto& [rows, row_bytes] : shapes) {
    config.rows[tile] = static_cast<std::uint8_t>(rows);
    config.row_bytes[tile++] = static_cast<std::uint16_t>(row_bytes);
  }
  return config;
}

std::uint16_t bf16_of(float x) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16); }

/// c + a * b for one row and column on the model, whose tiles then have the smallest shapes that hold it.
float product_of_row(const std::vector<float>& a, const std::vector<float>& b, float c) {
  const int pairs = static_cast<int>(a.size()) / 2;
  TileRegisters tiles;
  const TileConfig config = config_of({{1, 4}, {1, 4 * pairs}, {pairs, 4}});
  std::vector<std::uint16_t> left, right;
  for (float x : a) left.push_back(bf16_of(x));
  for (float x : b) right.push_back(bf16_of(x));
  tiles.ldtilecfg(&config);
  tiles.tileloadd(0, &c, 4);
  tiles.tileloadd(1, left.data(), 4 * pairs);
  tiles.tileloadd(2, right.data(), 4);
  tiles.tdpbf16ps(0, 1, 2);
  tiles.tilestored(0, &c, 4);
  return c;
}

TEST(TileModel, SumsTheFirstOfPairsAndTheSecondApart) {
  const float large = 0x1p24F;
  EXPECT_EQ(product_of_row({large, 0, 1, 0}, {1, 1, 1, 1}, 0), large);      // 1 is lost in one chain
  EXPECT_EQ(product_of_row({large, 1, 0, 1}, {1, 1, 1, 1}, 0), large + 2);  // and not where the other one sums up to 2 first
  EXPECT_EQ(product_of_row({1, 1}, {1, 1}, large), large + 2);              // what is there comes last
  EXPECT_EQ(product_of_row({large, 1}, {1, 1}, -large), 0);
}

TEST(TileModel, TakesAndGivesZerosForDenormals) {
  const float least = std::numeric_limits<float>::min();
  EXPECT_EQ(product_of_row({least / 2, 0}, {0x1p20F, 0}, 0), 0);
  EXPECT_EQ(product_of_row({least, 0}, {1, 0}, least / 2), least);
  EXPECT_EQ(product_of_row({-least, 0}, {0.5F, 0}, 0), 0);
  EXPECT_EQ(product_of_row({least, 0}, {2, 0}, 0), 2 * least);
  // What is denormal is so before digits are rounded away that only denormals lack.
  EXPECT_EQ(TileRegisters::multiply_add(least, 1 - 0x1p-24F, 0), 0);
  EXPECT_EQ(TileRegisters::multiply_add(least * (1 + 0x1p-13F), 1 - 0x1p-13F, 0), least);
  EXPECT_TRUE(std::signbit(TileRegisters::multiply_add(-least, 0.75F, 0)));
}

TEST(TileModel, SumsSignedBytesModulo32Bits) {
  TileRegisters tiles;
  const TileConfig config = config_of({{1, 8}, {1, 4}, {1, 8}});
  const std::int8_t a[4] = {-128, 127, -1, 2}, b[8] = {-128, 127, 3, 0, 1, 1, 1, 1};
  std::int32_t c[2] = {0x7fffffff, 5};
  tiles.ldtilecfg(&config);
  tiles.tileloadd(0, c, 8);
  tiles.tileloadd(1, a, 4);
  tiles.tileloadd(2, b, 8);
  tiles.tdpbssd(0, 1, 2);
  tiles.tilestored(0, c, 8);
  EXPECT_EQ(c[0], static_cast<std::int32_t>(0x7fffffffU + 128 * 128 + 127 * 127 - 3));
  EXPECT_EQ(c[1], 5);
}

TEST(TileModel, RefusesBadConfigurations) {
  const auto refuses = [](const TileConfig& config) { EXPECT_THROW(TileRegisters().ldtilecfg(&config), std::domain_error); };
  EXPECT_NO_THROW(TileRegisters().ldtilecfg(&whole_tiles));
  refuses(config_of({{17, 64}}));
  refuses(config_of({{16, 65}}));
  refuses(config_of({{0, 64}}));
  refuses(config_of({{16, 0}}));
  refuses(config_of({{1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}}));  // there is no tile 8
  TileConfig config = whole_tiles;
  config.palette = 2;
  refuses(config);
  config = whole_tiles;
  config.reserved[3] = 1;
  refuses(config);
}

TEST(TileModel, RefusesTilesThatAreNotThereAndShapesThatDoNotMatch) {
  TileRegisters tiles;
  EXPECT_THROW(tiles.tilezero(0), std::domain_error);
  const TileConfig config = config_of({{16, 64}, {16, 64}, {16, 64}, {15, 64}, {16, 60}, {16, 62}});
  tiles.ldtilecfg(&config);
  EXPECT_NO_THROW(tiles.tdpbf16ps(0, 1, 2));
  EXPECT_THROW(tiles.tdpbf16ps(0, 1, 6), std::domain_error);
  EXPECT_THROW(tiles.tdpbf16ps(0, 1, 1), std::domain_error);
  EXPECT_THROW(tiles.tdpbssd(0, 0, 1), std::domain_error);
  EXPECT_THROW(tiles.tdpbssd(0, 3, 2), std::domain_error);  // rows of A and C
  EXPECT_THROW(tiles.tdpbssd(0, 1, 3), std::domain_error);  // depth
  EXPECT_THROW(tiles.tdpbssd(0, 1, 4), std::domain_error);  // columns of B and C
  EXPECT_THROW(tiles.tdpbssd(0, 5, 1), std::domain_error);  // half an element
  tiles.tilerelease();
  EXPECT_THROW(tiles.tdpbf16ps(0, 1, 2), std::domain_error);
}

/// An element in the order of MicroKernel's comment; integers in any order.
Sum<Bf16> in_order_of_tiles(const GemmArgs<Bf16>& args, std::int64_t row, std::int64_t col) {
  float sum = 0;
  for (std::int64_t k = 0; k < args.k; k += 32) {
    float chains[2] = {0, 0};
    for (std::int64_t i = k; i < std::min(k + 32, args.k); ++i)
      chains[i % 2] = std::fma(element_of_a(args, 0, row, i), element_of_b(args, 0, i, col), chains[i % 2]);
    sum += chains[0] + chains[1];
  }
  return sum;
}
Sum<std::int8_t> in_order_of_tiles(const GemmArgs<std::int8_t>& args, std::int64_t row, std::int64_t col) {
  return static_cast<std::int32_t>(Expected<std::int8_t>(args, 0, row, col).value);
}

template <class T>
class AmxProductOf : public testing::Test {};
using NarrowTypes = testing::Types<Bf16, std::int8_t>;
TYPED_TEST_SUITE(AmxProductOf, NarrowTypes);

/// Around the sides of tiles, the 32 rows and columns of a kernel call, and the length of a pass: whole and one off.
constexpr std::int64_t edge_sizes[][3] = {{1, 1, 1},     {15, 31, 31},   {16, 32, 32},  {17, 33, 33},  {31, 16, 63},
                                          {32, 48, 64},  {33, 65, 65},   {47, 15, 127}, {48, 96, 128}, {49, 17, 129},
                                          {64, 31, 512}, {40, 40, 1025}, {2, 70, 2049}, {129, 64, 3}};  // m, n, k

TYPED_TEST(AmxProductOf, SumsEveryElementInTheSameOrder) {
  ThreadPool pool(2);
  for (const auto& [m, n, k] : edge_sizes) {
    const Stored<TypeParam> a(1, m, k, Layout::row_major, 1), b(1, k, n, Layout::row_major, 2);
    const GemmArgs<TypeParam> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = &test::model_kernel<TypeParam>};
    const std::vector<Sum<TypeParam>> c = run(args, pool);
    for (std::int64_t at = 0; at < m * n; ++at)
      ASSERT_EQ(c[static_cast<std::size_t>(at)], in_order_of_tiles(args, at / n, at % n)) << m << "x" << n << "x" << k << " at " << at;
  }
}

TYPED_TEST(AmxProductOf, ReadsOperandsThroughTables) {
  ThreadPool pool(2);
  const std::int64_t m = 37, n = 41, k = 70;
  const Stored<TypeParam> a(1, m, k, Layout::padded, 3), b(1, k, n, Layout::padded, 4);
  GemmArgs<TypeParam> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = &test::model_kernel<TypeParam>};
  const std::vector<Sum<TypeParam>> plain = run(args, pool);
  std::vector<std::int64_t> rows, depth_of_a, depth_of_b, columns;
  for (std::int64_t i = 0; i < m; ++i) rows.push_back(i * a.matrix.row_stride);
  for (std::int64_t i = 0; i < k; ++i) depth_of_a.push_back(i), depth_of_b.push_back(i * b.matrix.row_stride);
  for (std::int64_t i = 0; i < n; ++i) columns.push_back(i);
  args.a = {.data = a.matrix.data, .row_offsets = rows.data(), .col_offsets = depth_of_a.data()};
  args.b = {.data = b.matrix.data, .row_offsets = depth_of_b.data(), .col_offsets = columns.data()};
  EXPECT_EQ(run(args, pool), plain);
}

/// A's padding is zero, so that of B must not be infinite or no number.
TEST(AmxProduct, MeetsNoNumbersButThoseOfItsOperands) {
  ThreadPool pool(1);
  const std::int64_t m = 3, n = 33, k = 5;
  const Stored<Bf16> a(1, m, k, Layout::row_major, 5), b(1, k, n, Layout::row_major, 6);
  GemmArgs<Bf16> args{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = &test::model_kernel<Bf16>};
  const std::vector<float> plain = run(args, pool);
  std::vector<std::byte> workspace(gemm_workspace(args, 1) + 64, std::byte{0xff});  // NaN, wherever it is read before it is written
  args.workspace = workspace.data() + (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64);
  EXPECT_EQ(run(args, pool), plain);
}

TEST(AmxProduct, ReleasesTheTiles) {
  ThreadPool pool(1);
  const Stored<Bf16> a(1, 20, 40, Layout::row_major, 7), b(1, 40, 20, Layout::row_major, 8);
  run(GemmArgs<Bf16>{.m = 20, .n = 20, .k = 40, .a = a.matrix, .b = b.matrix, .kernel = &test::model_kernel<Bf16>}, pool);
  EXPECT_FALSE(ModelTiles::registers().configured());
}

/// The products of all sizes, one behind the other.
template <class T>
std::vector<Sum<T>> products_of_edge_sizes(const MicroKernel<T>& kernel, ThreadPool& pool) {
  std::vector<Sum<T>> all;
  for (const auto& [m, n, k] : edge_sizes) {
    const Stored<T> a(1, m, k, Layout::row_major, 9), b(1, k, n, Layout::column_major, 10);
    const std::vector<Sum<T>> c = run(GemmArgs<T>{.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .kernel = &kernel}, pool);
    all.insert(all.end(), c.begin(), c.end());
  }
  return all;
}

TYPED_TEST(AmxProductOf, HasTheBitsOfTheModelOnTheRealRegisters) {
  if (best_level(cpu_features()) < CpuLevel::amx) GTEST_SKIP() << "needs a CPU with AMX, and a system that allows its tile registers";
  ThreadPool pool(2);
  EXPECT_EQ(products_of_edge_sizes(micro_kernel<TypeParam>(CpuLevel::amx), pool),
            products_of_edge_sizes(test::model_kernel<TypeParam>, pool));
}

#if defined(__x86_64__) && defined(__linux__)
TYPED_TEST(AmxProductOf, HasTheBitsOfTheModelInMachineCode) {
  if (cpu_features().amx_tile) GTEST_SKIP() << "this CPU has AMX: see HasTheBitsOfTheModelOnTheRealRegisters";
  ThreadPool pool(2);
  const std::vector<Sum<TypeParam>> wanted = products_of_edge_sizes(test::model_kernel<TypeParam>, pool);
  const test::TileTrap trap;
  EXPECT_EQ(products_of_edge_sizes(micro_kernel<TypeParam>(CpuLevel::amx), pool), wanted);
  EXPECT_GT(trap.instructions(), 0);
}
#endif

}  // namespace
}  // namespace rlx::cpu
