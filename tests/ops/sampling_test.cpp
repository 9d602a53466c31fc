// Random numbers and token sampling: published vectors, moments, and the shares that filters leave.
#include <array>
#include <numeric>

#include "ops/broadcasting.h"
#include "ops/evaluated.h"

namespace rlx {
namespace {

using namespace test;

// Random numbers.

Array words(Shape shape, const std::vector<std::uint32_t>& list) {
  Array a(u32, std::move(shape));
  for (std::size_t i = 0; i < list.size(); ++i) a.set_uint(static_cast<std::int64_t>(i), list[i]);
  return a;
}

TEST(Random, PhiloxGivesThePublishedVectors) {
  // kat_vectors of Random123 1.14, philox4x32 with 10 rounds.
  auto block = [](const std::vector<std::uint32_t>& counter, const std::vector<std::uint32_t>& key) {
    return computed({words({4}, counter), words({2}, key)}, [](const Values& v) { return philox_4x32(v[0], v[1]); });
  };
  EXPECT_EQ(block({0, 0, 0, 0}, {0, 0}), words({4}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(block({ones, ones, ones, ones}, {ones, ones}), words({4}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            words({4}, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, BitsAreTheWordsOfConsecutiveBlocks) {
  const Array key = words({2}, {7, 9});
  Array counters(u32, {3, 4});
  for (std::int64_t i = 0; i < 3; ++i) counters.set_uint(i * 4, static_cast<std::uint64_t>(i));
  const auto results = run_all({key, counters}, [](const Values& v) {
    return Values{random_bits(v[0], {2, 5}), slice_axis(flatten(philox_4x32(v[1], v[0])), 0, 0, 10)};
  });
  EXPECT_EQ(values_of(results[0]), values_of(results[1]));
}

TEST(Random, DerivedKeysDifferFromEachOtherAndTheirParent) {
  const auto keys = run_all({words({2}, {0, 0})}, [](const Values& v) {
    return Values{random_key(v[0], scalar(v[0], 0, i32)), random_key(v[0], scalar(v[0], 1, i32)), random_bits(v[0], {2})};
  });
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_NE(keys[0], keys[2]);
}

// Mean and variance of `count` samples lie within 5 standard deviations of theirs; the key is fixed, so the test cannot flicker.
void expect_moments(const Array& x, double mean, double variance, double fourth) {
  const Doubles v = values_of(x);
  const auto count = static_cast<double>(v.size());
  const double seen_mean = std::accumulate(v.begin(), v.end(), 0.0) / count;
  double seen_variance = 0;
  for (double e : v) seen_variance += (e - seen_mean) * (e - seen_mean) / count;
  EXPECT_NEAR(seen_mean, mean, 5 * std::sqrt(variance / count));
  EXPECT_NEAR(seen_variance, variance, 5 * std::sqrt((fourth - variance * variance) / count));
}

TEST(Random, DistributionsHaveTheirMoments) {
  const Array key = words({2}, {1, 2});
  for (DType t : {f32, f64, f16, bf16}) {
    const Array u = computed({key}, [&](const Values& v) { return random_uniform(v[0], {4000}, t); });
    for (double e : values_of(u)) ASSERT_TRUE(e >= 0 && e < 1) << e;
    if (t != bf16) expect_moments(u, 0.5, 1.0 / 12, 1.0 / 80);  // bf16 steps of 2^-8 shift the mean by 2^-9
    expect_moments(computed({key}, [&](const Values& v) { return random_normal(v[0], {4000}, t, 3, 2); }), 3, 4, 48);
  }
  const double euler = 0.5772156649015329, pi = 3.141592653589793;
  expect_moments(computed({key}, [](const Values& v) { return random_gumbel(v[0], {4000}); }), euler, pi * pi / 6,
                 5.4 * pi * pi * pi * pi / 36);
  expect_moments(computed({key}, [](const Values& v) { return cast(random_bernoulli(v[0], {4000}, 0.3), f32); }), 0.3, 0.21,
                 0.3 * 0.7 * (1 - 3 * 0.21));
}

TEST(Random, IntegersCoverTheirRangeEvenly) {
  const Array x = computed({words({2}, {5, 5})}, [](const Values& v) { return random_integers(v[0], {6000}, -2, 4); });
  std::map<std::int64_t, int> counts;
  for (std::int64_t i = 0; i < x.size(); ++i) ++counts[x.get_int(i)];
  ASSERT_EQ(counts.size(), 6u);
  EXPECT_EQ(counts.begin()->first, -2);
  for (auto [value, count] : counts) EXPECT_NEAR(count, 1000, 5 * std::sqrt(1000 * 5 / 6.0)) << value;  // 5 standard deviations
}

TEST(Random, CategoricalDrawsInProportion) {
  const Array logits = array_of(f32, {3}, {std::log(1.0), std::log(2.0), std::log(5.0)});
  const Array ids =
      computed({words({2}, {3, 4}), logits}, [](const Values& v) { return categorical(v[0], broadcast_to(v[1], {4000, 3})); });
  std::array<int, 3> counts{};
  for (std::int64_t i = 0; i < ids.size(); ++i) ++counts.at(static_cast<std::size_t>(ids.get_int(i)));
  for (std::size_t i = 0; i < 3; ++i) {
    const double p = std::array{0.125, 0.25, 0.625}[i];
    EXPECT_NEAR(counts[i], 4000 * p, 5 * std::sqrt(4000 * p * (1 - p)));
  }
}

// Sampling.

// How often each token comes for uniform = 0.5 / 64, 1.5 / 64, ...: what is left after the filters, in the proportion it is left with.
// Shares of whole 64ths have their borders between the draws, where rounding cannot move them.
std::vector<int> drawn(const Doubles& logits, SampleOptions options, const Doubles& counts = {}) {
  const auto size = static_cast<std::int64_t>(logits.size());
  Array rows(f32, {64, size}), seen(i32, {64, size}), u(f32, {64});
  for (std::int64_t r = 0; r < 64; ++r) {
    u.set_double(r, (static_cast<double>(r) + 0.5) / 64);
    for (std::int64_t i = 0; i < size; ++i) rows.set_double(r * size + i, logits[static_cast<std::size_t>(i)]);
    for (std::int64_t i = 0; i < size; ++i) seen.set_double(r * size + i, counts.empty() ? 0 : counts[static_cast<std::size_t>(i)]);
  }
  const Array ids = computed({rows, u, seen}, [&](const Values& v) { return sample_token(v[0], v[1], options, v[2]); });
  std::vector<int> result(logits.size(), 0);
  for (std::int64_t r = 0; r < 64; ++r) ++result.at(static_cast<std::size_t>(ids.get_int(r)));
  return result;
}
Doubles logs(Doubles p) {
  for (double& v : p) v = std::log(v);
  return p;
}
using Counts = std::vector<int>;
const Doubles shares = logs({0.25, 0.5, 0.125, 0.125});

TEST(SampleToken, WithoutFiltersFollowsTheProbabilities) { EXPECT_EQ(drawn(shares, {}), (Counts{16, 32, 8, 8})); }

TEST(SampleToken, TemperatureZeroTakesTheLowestOfTheLargest) {
  EXPECT_EQ(drawn({1, 3, 3, 2}, {.top_k = 2, .temperature = 0}), (Counts{0, 64, 0, 0}));
  EXPECT_EQ(drawn({1, 3, 3, 2}, {.presence_penalty = 1.5, .temperature = 0}, {0, 1, 0, 0}), (Counts{0, 0, 64, 0}));
}

TEST(SampleToken, TopKKeepsTheLargestAndTheLowerIdOnTies) {
  EXPECT_EQ(drawn(logs({0.2, 0.6, 0.1, 0.1}), {.top_k = 2}), (Counts{16, 48, 0, 0}));
  const Counts three = drawn(shares, {.top_k = 3});
  EXPECT_GT(three[2], 0);
  EXPECT_EQ(three[3], 0);
  EXPECT_EQ(drawn(shares, {.top_k = 1}), (Counts{0, 64, 0, 0}));
  const Counts all = drawn(shares, {.top_k = 9});
  EXPECT_EQ(std::count(all.begin(), all.end(), 0), 0);
}

TEST(SampleToken, TopPKeepsTheLikeliestUpToTheMass) {
  EXPECT_EQ(drawn(logs({0.2, 0.6, 0.1, 0.1}), {.top_p = 0.7}), (Counts{16, 48, 0, 0}));
  EXPECT_EQ(drawn(shares, {.top_p = 0.4}), (Counts{0, 64, 0, 0}));
}

TEST(SampleToken, MinPComparesWithTheLikeliest) {
  EXPECT_EQ(drawn(logs({0.2, 0.6, 0.1, 0.1}), {.min_p = 0.3}), (Counts{16, 48, 0, 0}));
  EXPECT_EQ(drawn(shares, {.min_p = 0.6}), (Counts{0, 64, 0, 0}));
}

TEST(SampleToken, TypicalPrefersTheInformationContentNearTheEntropy) {
  // Entropy of (0.5, 0.25, 0.125, 0.125): 1.75 bits; the information of the four is 1, 2, 3, 3 bits: the second is the most typical.
  EXPECT_EQ(drawn(logs({0.5, 0.25, 0.125, 0.125}), {.typical_p = 0.2}), (Counts{0, 64, 0, 0}));
  const Counts two = drawn(logs({0.5, 0.25, 0.125, 0.125}), {.typical_p = 0.6});
  EXPECT_EQ(two[2] + two[3], 0);
  EXPECT_NEAR(two[0], 43, 1);  // 2/3 of 64
}

TEST(SampleToken, TemperatureSharpensTheRest) {
  // Squared probabilities: 0.04 to 0.36.
  const Counts sharp = drawn(logs({0.2, 0.6, 0.1, 0.1}), {.top_k = 2, .temperature = 0.5});
  EXPECT_NEAR(sharp[1], 57.6, 1);
  EXPECT_EQ(sharp[2] + sharp[3], 0);
}

TEST(SampleToken, PenaltiesLowerWhatWasSeen) {
  // 2 / 2 = 1 and -1 * 2 = -2, then 0.5 for each time and 0.25 once.
  const Array logits = array_of(f32, {1, 3}, {2, -1, 0.3}), counts = array_of(i32, {1, 3}, {1, 3, 0}), u = array_of(f32, {1}, {0.5});
  auto taken = [&](SampleOptions options) {
    options.temperature = 0;
    return computed({logits, u, counts}, [&](const Values& v) { return sample_token(v[0], v[1], options, v[2]); }).get_int(0);
  };
  EXPECT_EQ(taken({}), 0);
  EXPECT_EQ(taken({.repetition_penalty = 2}), 0);
  EXPECT_EQ(taken({.repetition_penalty = 7}), 2);
  EXPECT_EQ(taken({.frequency_penalty = 1.8}), 2);
  EXPECT_EQ(taken({.presence_penalty = 1.6}), 0);
  EXPECT_EQ(taken({.presence_penalty = 1.8}), 2);
}

TEST(SampleToken, OptionsOutOfRangeAreErrors) {
  Graph graph("test");
  Value logits = graph.input("logits", {2, 5}, f32), u = graph.input("u", {2}, f32);
  EXPECT_EQ(error_of([&] { sample_token(logits, u, {.top_p = 0}); }), "rlx.sample_token: top_p 0 (allowed: above 0, at most 1)");
  EXPECT_EQ(error_of([&] { sample_token(logits, u, {.temperature = -1}); }), "rlx.sample_token: temperature -1 (allowed: >= 0)");
  EXPECT_EQ(error_of([&] { sample_token(logits, logits); }),
            "rlx.sample_token: uniform is f32[2,5] beside logits f32[2,5] (allowed: their shape without the last axis)");
}

}  // namespace
}  // namespace rlx
