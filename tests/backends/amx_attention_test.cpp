// Attention of bf16 numbers on AMX's tile registers: in software, against plain loops and the vector kernels; and from the real
// instructions, with the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/tiles/tile_products.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/gemm_cases.h"
#include "backends/tile_trap.h"

namespace rlx::cpu {
namespace amx_attention_test {

constexpr TileProducts model_products = make_tile_products<test::ModelTiles>();

struct Case {
  std::int64_t heads, kv_heads, queries, keys, features, values;
  bool causal = false;
};

/// One vector of queries and two, keys that fill tiles and others, of one block and several, and heads that share their keys.
constexpr Case cases[] = {{2, 2, 40, 128, 64, 64},       {1, 1, 16, 16, 32, 16},         {1, 1, 17, 47, 96, 48},
                          {3, 1, 21, 300, 64, 64, true}, {2, 1, 65, 131, 128, 32, true}, {1, 1, 33, 1, 32, 16}};

struct Operands {
  explicit Operands(const Case& c)
      : q(random_values<Bf16>(c.heads * c.queries * c.features, 1)),
        k(random_values<Bf16>(c.kv_heads * c.keys * c.features, 2)),
        v(random_values<Bf16>(c.kv_heads * c.keys * c.values, 3)) {}
  std::vector<Bf16> q, k, v;
};

std::vector<float> attend(const Case& c, const Operands& x, const TileProducts* tiles, CpuLevel level = CpuLevel::avx512) {
  const std::int64_t item = 0;
  std::vector<Bf16> out(static_cast<std::size_t>(c.heads * c.queries * c.values));
  AttentionArgs<Bf16> args;
  args.heads = c.heads, args.kv_heads = c.kv_heads, args.queries = c.queries, args.keys = c.keys;
  args.head_size = c.features, args.value_size = c.values, args.causal = c.causal, args.scale = 0.5f;
  args.q = {x.q.data(), &item, c.queries * c.features, c.features, 1};
  args.k = {x.k.data(), &item, c.keys * c.features, c.features, 1};
  args.v = {x.v.data(), &item, c.keys * c.values, c.values, 1};
  args.out = {out.data(), &item, c.queries * c.values, c.values, 1};
  args.level = level, args.tiles = tiles;
  ThreadPool pool(2);
  const AlignedBuffer workspace(attention_workspace(args, pool.size()));
  std::fill_n(workspace.data(), attention_workspace(args, pool.size()), std::byte{0xff});  // NaN, wherever it is read before it is written
  args.workspace = workspace.data();
  attention(args, pool);
  std::vector<float> wide;
  for (const Bf16 number : out) wide.push_back(value_of(number));
  return wide;
}

std::vector<double> expected(const Case& c, const Operands& x) {
  std::vector<double> out;
  for (std::int64_t row = 0; row < c.heads * c.queries; ++row) {
    const std::int64_t query = row % c.queries, of = row / c.queries / (c.heads / c.kv_heads) * c.keys;
    std::vector<double> sums(static_cast<std::size_t>(c.values));
    double total = 0;
    for (std::int64_t key = 0; key < c.keys; ++key) {
      if (c.causal && key > c.keys - c.queries + query) continue;
      double score = 0;
      for (std::int64_t d = 0; d < c.features; ++d)
        score += double{value_of(x.q[static_cast<std::size_t>(row * c.features + d)])} *
                 value_of(x.k[static_cast<std::size_t>((of + key) * c.features + d)]);
      const double weight = std::exp(0.5 * score);
      total += weight;
      for (std::int64_t d = 0; d < c.values; ++d)
        sums[static_cast<std::size_t>(d)] += weight * value_of(x.v[static_cast<std::size_t>((of + key) * c.values + d)]);
    }
    for (const double sum : sums) out.push_back(total == 0 ? 0 : sum / total);
  }
  return out;
}

bool has_pairs() { return pair_products(CpuLevel::avx512) != nullptr && best_level(cpu_features()) >= CpuLevel::avx512; }
constexpr const char* without_pairs = "needs a CPU with AVX512-BF16, whose instructions round the weights";

/// Weights are rounded by up to 2^-9 of themselves, and add up to 1 before; values are at most 1, and results rounded by 2^-9 of that.
TEST(AmxAttention, AgreesWithPlainLoops) {
  if (!has_pairs()) GTEST_SKIP() << without_pairs;
  for (const Case& c : cases) {
    const Operands x(c);
    const std::vector<double> wanted = expected(c, x);
    const std::vector<float> seen = attend(c, x, &model_products);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(seen[i], wanted[i], 2 * 0x1p-9) << c.queries << " queries, " << c.keys << " keys, element " << i;
  }
}

/// Products are summed in another order than by vectors, which may round a weight or a result to its other neighbour.
TEST(AmxAttention, AgreesWithVectors) {
  if (!has_pairs()) GTEST_SKIP() << without_pairs;
  for (const Case& c : cases) {
    const Operands x(c);
    const std::vector<float> wanted = attend(c, x, nullptr), seen = attend(c, x, &model_products);
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(seen[i], wanted[i], 2 * 0x1p-9) << c.keys << " keys, element " << i;
  }
}

TEST(AmxAttention, ARowHasTheSameBitsWhateverIsBesideIt) {
  if (!has_pairs()) GTEST_SKIP() << without_pairs;
  Case c{2, 2, 50, 150, 64, 32};
  const Operands x(c);
  const std::vector<float> all = attend(c, x, &model_products);
  Case alone = c;  // the first 17 queries of the first head: too many for the kernels of few
  alone.heads = alone.kv_heads = 1, alone.queries = 17;
  const std::vector<float> few = attend(alone, x, &model_products);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin()));
}

TEST(AmxAttention, ReleasesTheTiles) {
  if (!has_pairs()) GTEST_SKIP() << without_pairs;
  constexpr TileProducts products = model_products;
  alignas(64) std::uint16_t a[16 * 32] = {}, b[16 * 64] = {};
  alignas(64) float c[16 * 32];
  products.multiply[1](16, 1, {a, 64, 1024, 64}, {b, 128, 64, 2048}, c, nullptr);
  EXPECT_FALSE(test::ModelTiles::registers().configured());
}

TEST(AmxAttention, HasTheBitsOfTheModelOnTheRealRegisters) {
  if (best_level(cpu_features()) < CpuLevel::amx) GTEST_SKIP() << "needs a CPU with AMX, and a system that allows its tile registers";
  for (const Case& c : cases) {
    const Operands x(c);
    EXPECT_EQ(attend(c, x, nullptr, CpuLevel::amx), attend(c, x, &model_products, CpuLevel::amx)) << c.keys;
  }
}

#if defined(__x86_64__) && defined(__linux__)
TEST(AmxAttention, HasTheBitsOfTheModelInMachineCode) {
  if (cpu_features().amx_tile) GTEST_SKIP() << "this CPU has AMX: see HasTheBitsOfTheModelOnTheRealRegisters";
  if (!has_pairs()) GTEST_SKIP() << without_pairs;
  for (const Case& c : cases) {
    const Operands x(c);
    const std::vector<float> wanted = attend(c, x, &model_products);
    const test::TileTrap trap;
    EXPECT_EQ(attend(c, x, &amx_attention), wanted) << c.keys;
    EXPECT_GT(trap.instructions(), 0);
  }
}
#endif

}  // namespace amx_attention_test
}  // namespace rlx::cpu
