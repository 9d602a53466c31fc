#include "rlx/dim.h"

#include <array>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "ir/symbols.h"
#include "rlx/error.h"

namespace rlx {
namespace {

const Dim B = Dim::symbol("B", 32), S = Dim::symbol("S", 512), T = Dim::symbol("T", 7);
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max(), smallest = std::numeric_limits<std::int64_t>::min();

TEST(Dim, PrintsAsAPolynomial) {
  EXPECT_EQ(Dim(-3).to_string(), "-3");
  EXPECT_EQ((2 * S + 1).to_string(), "2*S+1");
  EXPECT_EQ((S * B - 3 * S).to_string(), "B*S-3*S");
  EXPECT_EQ((1 - B).to_string(), "-B+1");
  EXPECT_EQ((B * B * 4).to_string(), "4*B*B");
}

TEST(Dim, EqualPolynomialsAreEqual) {
  EXPECT_EQ((B + S) * (B - S), B * B - S * S);
  EXPECT_EQ(((B + S) * (B - S)).hash(), (B * B - S * S).hash());
  EXPECT_EQ(B - B, Dim(0));
  EXPECT_TRUE((B + 4 - B).is_static());
  EXPECT_FALSE(B == S);
  EXPECT_FALSE(B == Dim(32));
}

TEST(Dim, ASymbolicSizeHasNoValue) {
  EXPECT_EQ((B - B + 5).value(), 5);
  EXPECT_THROW(B.value(), Error);
}

TEST(Dim, SymbolsAreNamedAndBounded) {
  EXPECT_THROW(Dim::symbol("", 4), Error);
  EXPECT_THROW(Dim::symbol("4B", 4), Error);
  EXPECT_THROW(Dim::symbol("a b", 4), Error);
  EXPECT_THROW(Dim::symbol("B", 0), Error);
  std::map<std::string, std::int64_t> symbols;
  (2 * S + B * S).collect_symbols(symbols);
  EXPECT_EQ(symbols, (std::map<std::string, std::int64_t>{{"B", 32}, {"S", 512}}));
  EXPECT_THROW(Dim::symbol("B", 33).collect_symbols(symbols), Error) << "two bounds for one name";
}

TEST(Dim, BoundsAreReached) {
  EXPECT_EQ((2 * S - 1).upper(), 1023);
  EXPECT_EQ((2 * S - 1).lower(), 1);
  EXPECT_EQ((B * S - 3 * B).upper(), 32 * 512 - 3);
  EXPECT_EQ((-B).upper(), -1);
  EXPECT_EQ((-B).lower(), -32);
}

TEST(Dim, BoundsHoldForEveryValue) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int64_t> coefficient(-4, 4);
  for (int round = 0; round < 200; ++round) {
    const Dim dim = coefficient(random) * T * T + coefficient(random) * T * B + coefficient(random) * B + coefficient(random);
    std::int64_t low = largest;
    for (std::int64_t t = 1; t <= 7; ++t)
      for (std::int64_t b = 1; b <= 32; ++b) {
        const std::int64_t value = dim.evaluate({{"T", t}, {"B", b}});
        ASSERT_LE(value, dim.upper()) << dim.to_string();
        ASSERT_GE(value, dim.lower()) << dim.to_string();
        low = std::min(low, value);
      }
    ASSERT_TRUE(low >= 0 || !dim.known_non_negative()) << dim.to_string();
  }
}

TEST(Dim, WhatIsNeverNegativeIsKnownToBeSo) {
  EXPECT_TRUE((S - 1).known_non_negative());
  EXPECT_TRUE((B * S + 2 * T - 3).known_non_negative());
  EXPECT_FALSE((S - 2).known_non_negative());
  EXPECT_FALSE((B - S).known_non_negative());
  EXPECT_TRUE((512 - S).known_non_negative());
}

TEST(Dim, EvaluatesOnlyWithinTheBounds) {
  EXPECT_EQ((2 * S + B).evaluate({{"S", 10}, {"B", 3}}), 23);
  EXPECT_THROW(S.evaluate({{"S", 513}}), Error);
  EXPECT_THROW(S.evaluate({{"S", 0}}), Error);
  EXPECT_THROW(S.evaluate({{"B", 1}}), Error);
}

TEST(Dim, ExactDivisionIsTheInverseOfMultiplication) {
  std::mt19937 random(2);
  std::uniform_int_distribution<std::int64_t> coefficient(-3, 3);
  const auto any = [&] { return coefficient(random) * B * S + coefficient(random) * S + coefficient(random) * B + coefficient(random); };
  for (int round = 0; round < 500; ++round) {
    const Dim a = any(), b = any();
    if (b == Dim(0)) continue;
    const auto quotient = Dim::exact_div(a * b, b);
    ASSERT_TRUE(quotient.has_value()) << (a * b).to_string() << " / " << b.to_string();
    ASSERT_EQ(*quotient, a);
  }
}

TEST(Dim, ADivisionWithARemainderGivesNothing) {
  EXPECT_FALSE(Dim::exact_div(7, 2));
  EXPECT_FALSE(Dim::exact_div(S, 2));
  EXPECT_FALSE(Dim::exact_div(S + 1, S));
  EXPECT_FALSE(Dim::exact_div(2, S));
  EXPECT_FALSE(Dim::exact_div(B * S, T));
  EXPECT_FALSE(Dim::exact_div(S, 0));
  EXPECT_EQ(Dim::exact_div(0, S), Dim(0));
}

TEST(Dim, WhatLeaves64BitsThrows) {
  EXPECT_THROW(Dim(largest) + 1, Error);
  EXPECT_THROW(Dim(smallest) - 1, Error);
  EXPECT_THROW(Dim(largest) * 2, Error);
  EXPECT_THROW(Dim(largest) * S + S, Error);
  EXPECT_THROW((largest * S).upper(), Error);
  EXPECT_THROW(Dim::exact_div(smallest, -1), Error);
  EXPECT_THROW(Dim::exact_div(Dim(smallest) * S, -1), Error);
  EXPECT_THROW((largest * B * S + largest * B + 1 * S).known_non_negative(), Error);
}

TEST(Dim, ProductsOfManySumsAreRefused) {
  Dim size = 1;
  const auto grow = [&] {
    for (int i = 0; i < 40; ++i) size *= Dim::symbol("a" + std::to_string(i), 2) + Dim::symbol("b" + std::to_string(i), 2);
  };
  EXPECT_THROW(grow(), Error) << "2^40 terms";
}

TEST(Dim, RunsOfASizeFollowFromIt) {
  const EvenRuns of_number = even_runs(520, 128).value(), of_symbol = even_runs(S, 128).value(), short_ones = even_runs(T, 128).value();
  EXPECT_EQ(of_number.count, Dim(5));
  EXPECT_EQ(of_number.size, Dim(104));
  EXPECT_EQ((of_symbol.count * of_symbol.size).to_string(), "S__run_128*S__runs_128");
  EXPECT_EQ(of_symbol.count.upper(), 4);
  EXPECT_EQ(of_symbol.size.upper(), 128);
  EXPECT_EQ(short_ones.size.upper(), 7);
  for (const auto& [size, count, length] : {std::array{1, 1, 1}, {128, 1, 128}, {129, 2, 65}, {300, 3, 100}, {512, 4, 128}}) {
    const Bindings bindings{{"S", size}};
    EXPECT_EQ(of_symbol.count.evaluate(bindings), count) << size;
    EXPECT_EQ(of_symbol.size.evaluate(bindings), length) << size;
  }
  EXPECT_EQ(of_symbol.count.evaluate({{"S__runs_128", 3}}), 3) << "a region has an input of that size";
  EXPECT_THROW(of_symbol.count.evaluate({{"T", 3}}), Error);
  EXPECT_THROW(Dim::symbol("S__runs_0", 4).evaluate({{"S", 3}}), Error);
  for (const Dim& size : {Dim(0), 2 * S, S + 1, S * B, of_symbol.count}) EXPECT_FALSE(even_runs(size, 128)) << size.to_string();
}

}  // namespace
}  // namespace rlx
