// Attention and rope against plain loops over their definitions.
#include <numbers>

#include "ops/near.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

/// Plain loops over one contract of attention: the oracle for what no fixture records. Heads of k and v are shared in runs.
struct PlainAttention {
  std::int64_t batch, heads, kv_heads, queries, keys, size;
  std::function<bool(std::int64_t b, std::int64_t query, std::int64_t key)> sees;

  Array operator()(const Array& q, const Array& k, const Array& v) const {
    Array y(f64, {batch, heads, queries, size});
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < queries; ++i) row(q, k, v, b, h, i, y);
    return y;
  }
  void row(const Array& q, const Array& k, const Array& v, std::int64_t b, std::int64_t h, std::int64_t i, Array& y) const {
    const std::int64_t from = ((b * heads + h) * queries + i) * size, shared = (b * kv_heads + h / (heads / kv_heads)) * keys;
    Doubles weights(static_cast<std::size_t>(keys), 0);
    double total = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!sees(b, i, j)) continue;
      double score = 0;
      for (std::int64_t d = 0; d < size; ++d) score += q.get_double(from + d) * k.get_double((shared + j) * size + d);
      total += weights[static_cast<std::size_t>(j)] = std::exp(score / std::sqrt(static_cast<double>(size)));
    }
    for (std::int64_t d = 0; d < size; ++d) {
      double sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) sum += weights[static_cast<std::size_t>(j)] * v.get_double((shared + j) * size + d);
      y.set_double(from + d, total == 0 ? 0 : sum / total);
    }
  }
};

class Attention : public ::testing::Test {
 protected:
  std::mt19937 random_{7};
  Array q_ = random_array({f64, {2, 4, 3, 8}}, -2, 2, random_), k_ = random_array({f64, {2, 2, 5, 8}}, -2, 2, random_),
        v_ = random_array({f64, {2, 2, 5, 8}}, -2, 2, random_);

  void expect_like(PlainAttention plain, const std::vector<Array>& more, const std::function<AttentionOptions(const Values&)>& options) {
    std::vector<Array> operands{q_, k_, v_};
    operands.insert(operands.end(), more.begin(), more.end());
    const Array seen = run_all(operands, [&](const Values& x) { return Values{attention(x[0], x[1], x[2], options(x))}; })[0];
    EXPECT_LE(difference(seen, plain(q_, k_, v_)), 1e-13);
  }
  static PlainAttention plain(std::function<bool(std::int64_t, std::int64_t, std::int64_t)> sees) {
    return {2, 4, 2, 3, 5, 8, std::move(sees)};
  }
};

TEST_F(Attention, CausalMasksAreAlignedToTheRight) {
  expect_like(plain([](auto, auto i, auto j) { return j <= i + 2; }), {}, [](const Values&) { return AttentionOptions{.causal = true}; });
}

TEST_F(Attention, WindowsHoldTheLastKeysUpToThePosition) {
  expect_like(plain([](auto, auto i, auto j) { return j <= i + 2 && j > i; }), {},
              [](const Values&) { return AttentionOptions{.window = 2}; });
}

TEST_F(Attention, PositionsAreThoseOfEachBatch) {
  const Doubles positions{0, 4, -1, 2, 3, 1};
  expect_like(plain([&](auto b, auto i, auto j) { return double(j) <= positions[static_cast<std::size_t>(b * 3 + i)]; }),
              {array_of(i32, {2, 3}, positions)}, [](const Values& x) { return AttentionOptions{.causal = true, .positions = x[3]}; });
  expect_like(plain([&](auto, auto i, auto j) { return double(j) <= positions[static_cast<std::size_t>(i)]; }),
              {array_of(i64, {3}, {0, 4, -1})}, [](const Values& x) { return AttentionOptions{.causal = true, .positions = x[3]}; });
}

TEST_F(Attention, RowsWithNothingToSeeGiveZeros) {
  const Array none = array_of(boolean, {1, 1, 3, 1}, {1, 0, 1}), minus = array_of(f64, {3, 1}, {0, -INFINITY, 0});
  auto sees = [](auto, auto i, auto) { return i != 1; };
  expect_like(plain(sees), {none}, [](const Values& x) { return AttentionOptions{.mask = x[3]}; });
  expect_like(plain(sees), {minus}, [](const Values& x) { return AttentionOptions{.bias = x[3]}; });
}

TEST_F(Attention, WorksOnSymbolicLengths) {
  Graph graph;
  const Dim batch = Dim::symbol("B", 8), queries = Dim::symbol("Q", 16), keys = Dim::symbol("K", 16);
  Value q = graph.input("q", {batch, 4, queries, 8}, f64), k = graph.input("k", {batch, 2, keys, 8}, f64),
        v = graph.input("v", {batch, 2, keys, 8}, f64);
  graph.output("y", attention(q, k, v, {.causal = true}));
  const Array seen = evaluate(graph, {{"q", q_}, {"k", k_}, {"v", v_}})[0];
  EXPECT_LE(difference(seen, plain([](auto, auto i, auto j) { return j <= i + 2; })(q_, k_, v_)), 1e-13);
}

TEST_F(Attention, RefusesWhatDoesNotFit) {
  Graph graph;
  Value q = graph.input("q", {1, 3, 4, 8}, f32), k = graph.input("k", {1, 2, 4, 8}, f32), m = graph.input("m", {7}, boolean);
  EXPECT_THROW(attention(q, k, k), Error);
  EXPECT_THROW(attention(q, q, q, {.mask = m}), Error);
  EXPECT_THROW(attention(q, q, q, {.mask = q}), Error);
  EXPECT_THROW(attention(q, q, q, {.window = -1}), Error);
}

/// x turned by position * frequency in f64, the definition.
Doubles plain_rope(const Array& x, std::int64_t position, const Doubles& frequencies, RopeStyle style, double magnitude) {
  Doubles y = values_of(x);
  const std::size_t pairs = frequencies.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::size_t a = style == RopeStyle::half ? i : 2 * i, b = style == RopeStyle::half ? i + pairs : 2 * i + 1;
    const double angle = static_cast<double>(position) * frequencies[i], c = std::cos(angle) * magnitude, s = std::sin(angle) * magnitude;
    y[a] = x.get_double(static_cast<std::int64_t>(a)) * c - x.get_double(static_cast<std::int64_t>(b)) * s;
    y[b] = x.get_double(static_cast<std::int64_t>(b)) * c + x.get_double(static_cast<std::int64_t>(a)) * s;
  }
  return y;
}

Doubles rope_at(const Array& x, std::int64_t position, const RopeOptions& options) {
  return values_of(run_all({x, array_of(i32, {1}, {static_cast<double>(position)})},
                           [&](const Values& v) { return Values{rope(v[0], v[1], options)}; })[0]);
}

Doubles powers(double theta, std::int64_t dims) {
  Doubles frequencies;
  for (std::int64_t i = 0; i < dims; i += 2) frequencies.push_back(1 / std::pow(theta, static_cast<double>(i) / static_cast<double>(dims)));
  return frequencies;
}

TEST(Rope, IsExactAtLargePositions) {
  std::mt19937 random(3);
  const Array x = random_array({f32, {1, 8}}, -1, 1, random);
  for (RopeStyle style : {RopeStyle::half, RopeStyle::interleaved})
    for (std::int64_t position : {0, 1, 131071, 10000001})
      // 4e-7: three f32 roundings of numbers up to 2. With angles in f32 the last position would be wrong in the first digit.
      expect_close(rope_at(x, position, {.style = style}), plain_rope(x, position, powers(10000, 8), style, 1), 4e-7);
}

TEST(Rope, TurnsOnlyTheFirstDims) {
  std::mt19937 random(4);
  const Array x = random_array({f64, {1, 8}}, -1, 1, random);
  expect_close(rope_at(x, 5, {.theta = 500, .dims = 4}), plain_rope(x, 5, powers(500, 4), RopeStyle::half, 1), 1e-14);
}

TEST(Rope, ScalingsFollowTheModelConfigs) {
  std::mt19937 random(5);
  const Array x = random_array({f64, {1, 8}}, -1, 1, random);
  const Doubles plain = powers(10000, 8);  // 1, 0.1, 0.01, 0.001: wavelengths 6.28, 62.8, 628, 6283
  auto expect = [&](const RopeOptions& options, const Doubles& frequencies, double magnitude) {
    expect_close(rope_at(x, 9, options), plain_rope(x, 9, frequencies, options.style, magnitude), 1e-14);
  };
  expect({.scaling = RopeScaling::linear, .factor = 4}, {0.25, 0.025, 0.0025, 0.00025}, 1);
  // Trained on 256 tokens: waves above 256 are stretched, below 64 kept; none lies between.
  expect({.scaling = RopeScaling::llama3, .factor = 8, .original_length = 256}, {1, 0.1, 0.01 / 8, 0.001 / 8}, 1);
  // 62.8 between 1024 / 32 and 1024 / 8: smooth = (1024 / 62.83 - 8) / 24.
  const double smooth = (1024 / (2 * std::numbers::pi / plain[1]) - 8) / 24;
  expect({.scaling = RopeScaling::llama3, .factor = 8, .original_length = 1024, .low_freq_factor = 8, .high_freq_factor = 32},
         {1, (1 - smooth) * plain[1] / 8 + smooth * plain[1], 0.01 / 8, 0.001 / 8}, 1);
  // Pairs with 32 and 1 turns in 4096 tokens lie at 1.31 and 2.81: the ramp runs from 1 to 3.
  expect({.scaling = RopeScaling::yarn, .factor = 4, .original_length = 4096}, {1, 0.1, 0.01 * (0.5 + 0.5 / 4), 0.001 / 4},
         0.1 * std::log(4.0) + 1);
  const RopeOptions longer{
      .scaling = RopeScaling::longrope, .factor = 4, .original_length = 16, .short_factors = {1, 2, 1, 1}, .long_factors = {1, 4, 8, 16}};
  const double magnitude = std::sqrt(1 + std::log(4.0) / std::log(16.0));
  expect(longer, {1, 0.05, 0.01, 0.001}, magnitude);
  expect_close(rope_at(x, 16, longer), plain_rope(x, 16, {1, 0.025, 0.00125, 0.0000625}, RopeStyle::half, magnitude), 1e-14);
}

TEST(Rope, TakesPositionsForEachBatch) {
  std::mt19937 random(6);
  const Array x = random_array({f64, {2, 3, 2, 4}}, -1, 1, random), positions = array_of(i32, {2, 2}, {0, 1, 7, 9});
  const auto seen = values_of(run_all({x, positions}, [](const Values& v) { return Values{rope(v[0], v[1])}; })[0]);
  for (std::int64_t row = 0; row < 12; ++row) {
    Array one(f64, {4});
    for (std::int64_t i = 0; i < 4; ++i) one.set_double(i, x.get_double(row * 4 + i));
    const auto wanted = plain_rope(one, positions.get_int(row / 6 * 2 + row % 2), powers(10000, 4), RopeStyle::half, 1);
    expect_close({seen.begin() + row * 4, seen.begin() + row * 4 + 4}, wanted, 1e-15);
  }
}

TEST(Rope, OnAGridTurnsByColumnThenByRow) {
  std::mt19937 random(8);
  const Array x = random_array({f64, {12, 8}}, -1, 1, random);
  const auto seen = values_of(run_all({x}, [](const Values& v) { return Values{axial_rope_2d(v[0], 3, 2, 100)}; })[0]);
  for (std::int64_t token = 0; token < 12; ++token)
    for (std::int64_t half = 0; half < 2; ++half) {
      Array part(f64, {4});
      for (std::int64_t i = 0; i < 4; ++i) part.set_double(i, x.get_double(token * 8 + half * 4 + i));
      const std::int64_t position = half == 0 ? token % 3 : token / 3 % 2;
      const auto wanted = plain_rope(part, position, powers(100, 4), RopeStyle::interleaved, 1);
      const auto begin = seen.begin() + token * 8 + half * 4;
      expect_close({begin, begin + 4}, wanted, 1e-15);
    }
}

}  // namespace
}  // namespace rlx::test
