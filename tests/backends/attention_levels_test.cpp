// Attention without a session: at every level of this CPU, against plain loops in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/tiles/element.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "base/half.h"

namespace rlx::cpu {
namespace attention_levels_test {

struct Case {
  std::int64_t queries, keys, features, values;
  float softcap = 0;
  bool causal = false;
  std::int64_t window = 0;
  bool masked = false;

  std::string name() const {
    return fmt::format("{} queries, {} keys, {} and {} features, cap {}, causal {}, window {}, masked {}", queries, keys, features, values,
                       softcap, causal, window, masked);
  }
};

constexpr std::int64_t heads = 4, kv_heads = 2;
constexpr float scale = 0.4f;

struct Operands {
  explicit Operands(const Case& c) : q(heads * c.queries * c.features), k(kv_heads * c.keys * c.features), v(kv_heads * c.keys * c.values) {
    std::mt19937 bits(3);
    std::uniform_real_distribution<float> number(-2, 2);
    for (auto* numbers : {&q, &k, &v})
      for (float& x : *numbers) x = number(bits);
    mask.resize(static_cast<std::size_t>(c.queries * c.keys));
    for (std::uint8_t& x : mask) x = bits() % 3 != 0;
  }
  std::vector<float> q, k, v;
  std::vector<std::uint8_t> mask;
};

bool is_seen(const Case& c, const Operands& x, std::int64_t query, std::int64_t key) {
  const std::int64_t position = c.keys - c.queries + query;
  if ((c.causal || c.window > 0) && key > position) return false;
  if (c.window > 0 && key <= position - c.window) return false;
  return !c.masked || x.mask[static_cast<std::size_t>(query * c.keys + key)] != 0;
}

std::vector<double> expected(const Case& c, const Operands& x) {
  std::vector<double> out;
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t query = 0; query < c.queries; ++query) {
      const float* const q = x.q.data() + (head * c.queries + query) * c.features;
      const std::int64_t of = head / (heads / kv_heads) * c.keys;
      std::vector<double> sums(static_cast<std::size_t>(c.values));
      double total = 0;
      for (std::int64_t key = 0; key < c.keys; ++key) {
        if (!is_seen(c, x, query, key)) continue;
        double score = 0;
        for (std::int64_t d = 0; d < c.features; ++d)
          score += static_cast<double>(q[d]) * x.k[static_cast<std::size_t>((of + key) * c.features + d)];
        score *= scale;
        if (c.softcap > 0) score = c.softcap * std::tanh(score / c.softcap);
        const double weight = std::exp(score);
        total += weight;
        for (std::int64_t d = 0; d < c.values; ++d)
          sums[static_cast<std::size_t>(d)] += weight * x.v[static_cast<std::size_t>((of + key) * c.values + d)];
      }
      for (double sum : sums) out.push_back(total == 0 ? 0 : sum / total);
    }
  return out;
}

/// Keys or values as elements K, and what of int8 they are multiplied by.
template <class K>
struct Rows {
  std::vector<K> elements;
  std::vector<float> factors = {};
};

/// Queries and results are elements T.
template <class T, class K>
std::vector<T> attend_as(const Case& c, const std::vector<T>& q, const Operands& x, const Rows<K>& k, const Rows<K>& v, CpuLevel level,
                         bool int16 = false, int threads = 2) {
  const std::int64_t item = 0;
  std::vector<T> out(static_cast<std::size_t>(heads * c.queries * c.values));
  for (T& element : out) assign(element, NAN);
  AttentionArgs<T, K> args;
  args.heads = heads, args.kv_heads = kv_heads, args.queries = c.queries, args.keys = c.keys;
  args.head_size = c.features, args.value_size = c.values;
  args.q = {q.data(), &item, c.queries * c.features, c.features, 1};
  args.k = {k.elements.data(), &item, c.keys * c.features, c.features, 1};
  args.v = {v.elements.data(), &item, c.keys * c.values, c.values, 1};
  const auto factors = [&](const Rows<K>& rows, std::int64_t features) {
    const std::int64_t runs = features % 16 == 0 ? features / 16 : 1;
    return RowFactors{{rows.factors.data(), &item, c.keys * runs, runs, 1}, runs > 1 ? 4 : 62};
  };
  args.k_factors = factors(k, c.features), args.v_factors = factors(v, c.values);
  args.out = {out.data(), &item, c.queries * c.values, c.values, 1};
  if (c.masked) args.mask = {x.mask.data(), &item, 0, c.keys, 1};
  args.scale = scale, args.softcap = c.softcap, args.causal = c.causal, args.window = c.window;
  args.level = level, args.int16 = int16;
  ThreadPool pool(threads);
  const AlignedBuffer workspace(attention_workspace(args, pool.size()));
  args.workspace = workspace.data();
  attention(args, pool);
  return out;
}

template <class K>
std::vector<float> attend(const Case& c, const Operands& x, const Rows<K>& k, const Rows<K>& v, CpuLevel level, bool int16 = false,
                          int threads = 2) {
  return attend_as<float>(c, x.q, x, k, v, level, int16, threads);
}

std::vector<float> attend(const Case& c, const Operands& x, CpuLevel level) {
  return attend<float>(c, x, Rows<float>{x.k}, Rows<float>{x.v}, level);
}

/// Scores of up to about 30 in f32 are off by some 2e-6, and so are the weights, of which each row adds up to 1; values are below 2.
constexpr double tolerance = 4e-6;

// Few queries, a vector of them, two, and several blocks; one block of keys, several, and chunks of them.
TEST(AttentionLevels, AgreeWithPlainLoops) {
  const Case cases[] = {
      {1, 1, 1, 1},
      {1, 130, 33, 31},
      {4, 17, 8, 16, 3},
      {5, 40, 12, 20},
      {1, 1100, 35, 37},
      {7, 9, 16, 5, 3},
      {17, 41, 12, 20, 0, true},
      {63, 130, 33, 31, 3, true, 20},
      {130, 63, 16, 16, 0, false, 0, true},
      {33, 300, 20, 12, 0, true, 40, true},
      {3, 140, 7, 13, 0, true, 0, true},
  };
  for (const Case& c : cases) {
    const Operands x(c);
    const std::vector<double> wanted = expected(c, x);
    for (CpuLevel level : allowed_levels(cpu_features())) {
      const std::vector<float> seen = attend(c, x, level);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(seen[i], wanted[i], tolerance) << c.name() << " at " << to_string(level) << ", element " << i;
    }
  }
}

/// The numbers, of rows of so many features, as they are stored; they become what is stored.
template <class K>
Rows<K> stored(std::vector<float>& numbers, std::int64_t features) {
  Rows<K> rows;
  const std::size_t run = features % 16 == 0 ? 16 : static_cast<std::size_t>(features);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if constexpr (std::is_same_v<K, std::int8_t>) {
      if (i % run == 0) rows.factors.push_back(0.01f + 0.001f * static_cast<float>(i / run % 7));
      rows.elements.push_back(static_cast<std::int8_t>(std::lrint(numbers[i] * 60)));
      numbers[i] = static_cast<float>(rows.elements.back()) * rows.factors.back();
    } else {
      constexpr bool is_half = std::is_same_v<K, F16>;
      const std::uint16_t bits = is_half ? f16_bits(numbers[i]) : bf16_bits(numbers[i]);
      rows.elements.push_back(std::bit_cast<K>(bits));
      numbers[i] = is_half ? f16_value(bits) : bf16_value(bits);
    }
  }
  return rows;
}

template <class K>
void expect_bits_of_wide_rows(const Case& c, CpuLevel level) {
  Operands x(c);
  x.k[0] = 1e-6f, x.v[0] = 3e-5f;  // below the smallest normal half
  const Rows<K> k = stored<K>(x.k, c.features), v = stored<K>(x.v, c.values);
  EXPECT_EQ(attend(c, x, k, v, level), attend(c, x, level)) << c.name() << " at " << to_string(level);
}

// The oracle is the same attention of the numbers that are stored, in f32, which are exact in it.
TEST(AttentionLevels, NarrowKeysAndValuesGiveTheBitsOfTheSameNumbersInF32) {
  const Case cases[] = {
      {1, 130, 33, 31}, {1, 1100, 64, 32}, {3, 300, 48, 80, 0, true}, {4, 40, 12, 20}, {33, 300, 32, 16, 3, true, 40, true}};
  for (const Case& c : cases)
    for (CpuLevel level : allowed_levels(cpu_features())) {
      expect_bits_of_wide_rows<F16>(c, level);
      expect_bits_of_wide_rows<Bf16>(c, level);
      expect_bits_of_wide_rows<std::int8_t>(c, level);
    }
}

/// As the op says of int16: what rounding moves a result by, at random and so by its root mean square, six of which none exceeds.
/// Integers are off by sqrt(1/12); numbers here have the root mean square of values spread over (-2, 2), rows have sqrt(features) as much.
double rounding(const Case& c) {
  const double integer = std::sqrt(1.0 / 12), number = 2 / std::sqrt(3.0);
  const double score = std::sqrt(2.0) * integer / 32767 * number * number * static_cast<double>(c.features) * scale;
  const double value = integer / 8191 * 2, weight = integer / 32767 * number;
  return 6 * (score * number + value + weight);
}

template <class K>
void expect_rounding_only(const Case& c, CpuLevel level) {
  Operands x(c);
  const Rows<K> k = stored<K>(x.k, c.features), v = stored<K>(x.v, c.values);
  const std::vector<double> wanted = expected(c, x);
  const std::vector<float> seen = attend(c, x, k, v, level, true);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(seen[i], wanted[i], rounding(c)) << c.name() << " at " << to_string(level) << ", element " << i;
  EXPECT_EQ(attend(c, x, k, v, level, true, 1), seen) << c.name();
}

// Blocks of queries that fill vectors and others, more than meet keys together; windows that begin at odd keys, queries that see nothing.
constexpr Case rounded_cases[] = {
    {32, 41, 16, 16},          {40, 300, 64, 64, 0, true},       {600, 700, 32, 16, 0, true}, {33, 300, 48, 32, 3, true, 41, true},
    {70, 33, 16, 16, 0, true}, {37, 1500, 32, 48, 0, true, 1111}};

TEST(AttentionLevels, IntegersOf16BitsAreOffByTheirRounding) {
  for (const Case& c : rounded_cases)
    for (CpuLevel level : allowed_levels(cpu_features())) {
      expect_rounding_only<F16>(c, level);
      expect_rounding_only<Bf16>(c, level);
      expect_rounding_only<std::int8_t>(c, level);
    }
}

/// The last queries of each head of a case with more.
Operands last_queries(const Case& all, const Operands& x, std::int64_t queries) {
  Operands last = x;
  last.q.clear();
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto end = x.q.begin() + (head + 1) * all.queries * all.features;
    last.q.insert(last.q.end(), end - queries * all.features, end);
  }
  return last;
}

// One query, few, a vector of them and many; keys of one chunk and of several, features that fill no vector.
TEST(AttentionLevels, RowsHaveTheSameBitsAloneAndTogether) {
  for (const Case& all : {Case{71, 300, 64, 32, 0, true}, Case{71, 2200, 37, 21, 3, true, 1300}}) {
    const Operands x(all);
    for (const CpuLevel level : allowed_levels(cpu_features())) {
      const std::vector<float> of_all = attend(all, x, level);
      for (const std::int64_t queries : {1, 2, 3, 5, 9, 17, 39}) {
        Case some = all;
        some.queries = queries;
        const std::vector<float> of_some = attend(some, last_queries(all, x, queries), level);
        const std::int64_t count = queries * all.values;
        for (std::int64_t head = 0; head < heads; ++head)
          EXPECT_TRUE(std::equal(of_some.begin() + head * count, of_some.begin() + (head + 1) * count,
                                 of_all.begin() + (head + 1) * all.queries * all.values - count))
              << some.name() << ", head " << head << " at " << to_string(level);
      }
    }
  }
}

// Of neither number of queries is a last block left at any level that is so small as to be multiplied along the features.
TEST(AttentionLevels, RoundedRowsDoNotDependOnThoseBeside) {
  for (const std::int64_t window : {std::int64_t{0}, std::int64_t{77}}) {
    const Case all{71, 300, 64, 32, 0, true, window}, some{39, 300, 64, 32, 0, true, window};
    Operands x(all);
    const Rows<F16> k = stored<F16>(x.k, all.features), v = stored<F16>(x.v, all.values);
    const std::vector<float> of_all = attend(all, x, k, v, cpu_level(), true);
    const std::vector<float> of_some = attend(some, last_queries(all, x, some.queries), k, v, cpu_level(), true);
    const std::int64_t count = some.queries * some.values;
    for (std::int64_t head = 0; head < heads; ++head)
      EXPECT_TRUE(std::equal(of_some.begin() + head * count, of_some.begin() + (head + 1) * count,
                             of_all.begin() + (head + 1) * all.queries * all.values - count))
          << "head " << head << ", window " << window;
  }
}

/// Attention of bf16 queries, keys and values.
std::vector<float> attend_bf16(const Case& c, Operands x, int threads) {
  const Rows<Bf16> q = stored<Bf16>(x.q, c.features), k = stored<Bf16>(x.k, c.features), v = stored<Bf16>(x.v, c.values);
  std::vector<float> wide;
  for (const Bf16 element : attend_as<Bf16>(c, q.elements, x, k, v, cpu_level(), false, threads)) wide.push_back(widened(element));
  return wide;
}

// More blocks of queries than take values together, whose windows begin at odd keys and at even ones; the same rows among fewer.
TEST(AttentionLevels, BFloat16RowsDoNotDependOnThoseBesideNorOnThreads) {
  for (const std::int64_t window : {std::int64_t{0}, std::int64_t{77}}) {
    const Case all{583, 600, 64, 32, 0, true, window}, some{39, 600, 64, 32, 0, true, window};
    const Operands x(all);
    const std::vector<float> of_all = attend_bf16(all, x, 2), of_some = attend_bf16(some, last_queries(all, x, some.queries), 1);
    EXPECT_EQ(attend_bf16(all, x, 1), of_all);
    const std::int64_t count = some.queries * some.values;
    for (std::int64_t head = 0; head < heads; ++head)
      EXPECT_TRUE(std::equal(of_some.begin() + head * count, of_some.begin() + (head + 1) * count,
                             of_all.begin() + (head + 1) * all.queries * all.values - count))
          << "head " << head << ", window " << window;
  }
}

// What is no number reaches the rows that see it; that of a key, no others. Rows may be zero.
TEST(AttentionLevels, RoundedRowsPassOnWhatIsNoNumber) {
  const Case c{40, 200, 32, 16, 0, true};
  constexpr std::int64_t key = 180, zeros = 20;  // queries see the key from the 21st on
  for (const bool of_keys : {true, false}) {
    Operands x(c);
    std::fill_n(x.k.begin() + zeros * c.features, c.features, 0.0f);
    std::fill_n(x.v.begin() + zeros * c.values, c.values, 0.0f);
    (of_keys ? x.k : x.v)[static_cast<std::size_t>(key * (of_keys ? c.features : c.values) + 3)] = NAN;
    const Rows<F16> k = stored<F16>(x.k, c.features), v = stored<F16>(x.v, c.values);
    const std::vector<float> seen = attend(c, x, k, v, cpu_level(), true);
    for (std::int64_t query = 0; query < c.queries; ++query) {
      const float result = seen[static_cast<std::size_t>(query * c.values + 3)];
      if (query >= key - (c.keys - c.queries)) {
        EXPECT_TRUE(std::isnan(result)) << query;
      } else if (of_keys) {
        EXPECT_TRUE(std::isfinite(result)) << query;
      }
    }
  }
}

/// Where the rows of an item's keys, or values, lie: pages of 128 rows of all heads, those of all items in one heap, in any order.
struct Pages {
  static constexpr std::int64_t rows = attention_key_block;

  /// `of_item`: (kv_heads, keys, features) each.
  Pages(std::span<const std::vector<float>> of_item, std::span<const std::int64_t> keys, std::int64_t features, std::int64_t count)
      : heap(static_cast<std::size_t>(of_item.size() * count * kv_heads * rows * features), NAN) {
    const auto all = static_cast<std::int64_t>(of_item.size()) * count;
    for (std::int64_t item = 0; item < static_cast<std::int64_t>(of_item.size()); ++item)
      for (std::int64_t page = 0; page < count; ++page) {
        const std::int64_t place = (item * count + page) * 5 % all;  // all of them: 5 divides no count here
        starts.push_back(place * kv_heads * rows * features);
        for (std::int64_t head = 0; head < kv_heads; ++head)
          for (std::int64_t key = page * rows; key < std::min((page + 1) * rows, keys[static_cast<std::size_t>(item)]); ++key) {
            const auto from =
                of_item[static_cast<std::size_t>(item)].begin() + (head * keys[static_cast<std::size_t>(item)] + key) * features;
            std::copy_n(from, features, heap.begin() + starts.back() + (head * rows + key % rows) * features);
          }
      }
  }
  AttentionOperand<const float> operand(const std::int64_t* items, std::int64_t features, std::int64_t count) const {
    return {heap.data(), items, rows * features, features, 1, starts.data(), rows, count};
  }
  std::vector<float> heap;
  std::vector<std::int64_t> starts;
};

// Tokens of several sequences, several of one of them: each sees its own pages up to its position, and nobody sees what is behind.
TEST(AttentionLevels, ReadPagesOfSequencesOfUnlikeLengths) {
  constexpr std::int64_t features = 20, values = 12, count = 12;
  for (const std::int64_t window : {std::int64_t{0}, std::int64_t{150}}) {
    const Case cases[] = {{1, 130, features, values, 0, true, window},
                          {40, 300, features, values, 0, true, window},
                          {1, 1500, features, values, 0, true, window},
                          {3, 3, features, values, 0, true, window}};
    std::vector<std::vector<float>> keys, numbers, wanted;
    std::vector<std::int64_t> lengths, first_queries{0}, zeros(4, 0), q_items, out_items;
    std::vector<std::int32_t> positions;
    std::vector<float> q;
    for (const Case& c : cases) {
      const Operands x(c);
      keys.push_back(x.k), numbers.push_back(x.v), lengths.push_back(c.keys);
      std::vector<float>& mine = wanted.emplace_back();
      for (double each : expected(c, x)) mine.push_back(static_cast<float>(each));
      q_items.push_back(static_cast<std::int64_t>(q.size()));
      out_items.push_back(first_queries.back() * heads * values);
      first_queries.push_back(first_queries.back() + c.queries);
      for (std::int64_t i = 0; i < c.queries; ++i) positions.push_back(static_cast<std::int32_t>(c.keys - c.queries + i));
      for (std::int64_t query = 0; query < c.queries; ++query)  // (query, head, feature), as one product gives them
        for (std::int64_t head = 0; head < heads; ++head) {
          const auto from = x.q.begin() + (head * c.queries + query) * features;
          q.insert(q.end(), from, from + features);
        }
    }
    const Pages k(keys, lengths, features, count), v(numbers, lengths, values, count);
    for (CpuLevel level : allowed_levels(cpu_features()))
      for (int threads : {1, 2}) {
        std::vector<float> out(static_cast<std::size_t>(first_queries.back() * heads * values), NAN);
        AttentionArgs<float> args;
        args.batch = 4, args.heads = heads, args.kv_heads = kv_heads, args.queries = 1, args.keys = count * Pages::rows;
        args.head_size = features, args.value_size = values;
        args.q = {q.data(), q_items.data(), features, heads * features, 1};
        args.k = k.operand(zeros.data(), features, count), args.v = v.operand(zeros.data(), values, count);
        args.out = {out.data(), out_items.data(), values, heads * values, 1};
        args.positions = positions.data(), args.first_queries = first_queries.data();
        args.scale = scale, args.causal = true, args.window = window, args.level = level;
        ThreadPool pool(threads);
        const AlignedBuffer workspace(attention_workspace(args, pool.size()));
        args.workspace = workspace.data();
        attention(args, pool);
        for (std::size_t item = 0; item < 4; ++item)
          for (std::int64_t query = 0; query < cases[item].queries; ++query)
            for (std::int64_t at = 0; at < heads * values; ++at) {
              const std::int64_t of = (at / values * cases[item].queries + query) * values + at % values;
              ASSERT_NEAR(out[static_cast<std::size_t>(out_items[item] + query * heads * values + at)],
                          wanted[item][static_cast<std::size_t>(of)], tolerance)
                  << cases[item].name() << " at " << to_string(level) << ", query " << query << ", element " << at;
            }
      }
  }
}

}  // namespace attention_levels_test
}  // namespace rlx::cpu
