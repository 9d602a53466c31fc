#include "ir/index.h"

#include <random>

#include <gtest/gtest.h>

namespace rlx {
namespace {

const Dim M = Dim::symbol("M", 6), N = Dim::symbol("N", 9);

std::vector<Index> variables(const Dims& shape) {
  std::vector<Index> at;
  for (const Dim& size : shape) at.push_back(Index::variable(static_cast<int>(at.size()), size));
  return at;
}

/// Every prefix of a chain of reshapes: where an element of the last shape lies in the first.
std::vector<Index> through(const std::vector<Dims>& shapes) {
  std::vector<Index> at = variables(shapes.back());
  for (std::size_t i = shapes.size() - 1; i-- > 0;) at = unflatten(flatten(at, shapes[i + 1]), shapes[i]);
  return at;
}

std::int64_t value_of(const Index& index, const std::vector<std::int64_t>& variables, const Bindings& symbols);

std::int64_t value_of(const Atom& atom, const std::vector<std::int64_t>& variables, const Bindings& symbols) {
  if (atom.kind == Atom::Kind::variable) return variables[static_cast<std::size_t>(atom.id)];
  const std::int64_t a = value_of(*atom.numerator, variables, symbols), b = atom.denominator.evaluate(symbols);
  const std::int64_t remainder = (a % b + b) % b;
  return atom.kind == Atom::Kind::remainder ? remainder : (a - remainder) / b;
}

std::int64_t value_of(const Index& index, const std::vector<std::int64_t>& variables, const Bindings& symbols) {
  std::int64_t total = index.constant().evaluate(symbols);
  for (const Index::Term& term : index.terms()) total += term.coefficient.evaluate(symbols) * value_of(*term.atom, variables, symbols);
  return total;
}

TEST(Index, EqualExpressionsAreEqual) {
  const Index i = Index::variable(0, 4), j = Index::variable(1, N);
  EXPECT_EQ(i * N + j + 3, Index(3) + j + i * N);
  EXPECT_EQ((i * N + j).hash(), (j + i * N).hash());
  EXPECT_EQ(i + j - i, j);
  EXPECT_EQ((i + j) * 0, Index(0));
  EXPECT_FALSE(i == j);
}

TEST(Index, AVariableOfExtentOneIsZero) { EXPECT_EQ(Index::variable(3, 1), Index(0)); }

TEST(Index, BoundsFollowFromTheExtents) {
  const Index i = Index::variable(0, 4), j = Index::variable(1, N);
  EXPECT_EQ((i * 3 - j).upper(), Dim(9));
  EXPECT_EQ((i * 3 - j).lower(), 1 - N);
  EXPECT_TRUE(j.known_below(N));
  EXPECT_FALSE((j + 1).known_below(N));
  EXPECT_FALSE((i - 1).known_non_negative());
}

TEST(Index, TheQuotientsOfAnAxisOfPagesAreThePages) {
  const Index row = Index::variable(0, N * 4), page = Index::quotient(row, 4);
  EXPECT_TRUE(page.known_below(N));
  EXPECT_FALSE(page.known_below(N - 1));
  EXPECT_FALSE(Index::quotient(row + 1, 4).known_below(N));
  EXPECT_EQ(Index::quotient(page, N), Index(0));
}

TEST(Index, DivisionTakesMultiplesOut) {
  const Index i = Index::variable(0, 4), j = Index::variable(1, N);
  EXPECT_EQ(Index::quotient(i * N + j, N), i);
  EXPECT_EQ(Index::remainder(i * N + j, N), j);
  EXPECT_EQ(Index::quotient(i * 8 + 5, 4), i * 2 + 1);
  EXPECT_EQ(Index::remainder(i * 8 + 5, 4), Index(1));
  EXPECT_EQ(Index::quotient(i, 4), Index(0));
  EXPECT_EQ(Index::remainder(i, 1), Index(0));
}

TEST(Index, QuotientAndRemainderJoinAgain) {
  const Index i = Index::variable(0, 4), j = Index::variable(1, N), flat = i * 5 + j;
  for (const Dim& by : {Dim(3), N, 2 * M + 1}) {
    EXPECT_EQ(Index::quotient(flat, by) * by + Index::remainder(flat, by), flat) << by.to_string();
    EXPECT_EQ(Index::remainder(flat, by) * 7 + i + Index::quotient(flat, by) * (by * 7), flat * 7 + i) << by.to_string();
  }
}

TEST(Index, ReshapesThereAndBackCancel) {
  const std::vector<std::vector<Dims>> chains{{{6, 4}, {3, 8}, {6, 4}},
                                              {{2, 3, 4}, {24}, {2, 3, 4}},
                                              {{5, 7}, {7, 5}, {35}, {5, 7}},
                                              {{M, N, 4}, {M * N, 4}, {M, N, 4}},
                                              {{M * N, 4}, {M, N, 4}, {M * N, 4}},
                                              {{M, N}, {N, M}, {M, N}},
                                              {{M, 12, 2}, {M, 3, 4, 2}, {M, 6, 4}, {M, 12, 2}},
                                              {{M, N, 8}, {M, N, 2, 4}, {M * N * 2, 4}, {M, N, 8}},
                                              {{1, M, 1}, {M}, {1, M, 1}}};
  for (const auto& chain : chains) {
    const std::vector<Index> at = variables(chain.back()), from = through(chain);
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      EXPECT_EQ(from[axis], at[axis]) << from[axis].to_string() << " in " << to_string(chain[1]);
  }
}

TEST(Index, ReshapesReadTheElementsOfTheSameRowMajorPosition) {
  const std::vector<std::vector<Dims>> chains{{{3, 8}, {6, 4}},         {{4, 9}, {6, 6}, {12, 3}},
                                              {{N, M}, {M, N}},         {{M, 6}, {2, 3 * M}, {3, M, 2}},
                                              {{M * N, 4}, {M, 4 * N}}, {{N, 2, M}, {M, N, 2}, {2 * N * M}}};
  const Bindings symbols{{"M", 3}, {"N", 5}};
  for (const auto& chain : chains) {
    const std::vector<Index> from = through(chain);
    const Index flat = flatten(from, chain.front());
    std::vector<std::int64_t> at(chain.back().size(), 0);
    const std::int64_t count = product(chain.back()).evaluate(symbols);
    for (std::int64_t position = 0; position < count; ++position) {
      std::int64_t rest = position;
      for (std::size_t axis = at.size(); axis-- > 0;) {
        const std::int64_t size = chain.back()[axis].evaluate(symbols);
        at[axis] = rest % size;
        rest /= size;
      }
      ASSERT_EQ(value_of(flat, at, symbols), position) << flat.to_string();
      for (std::size_t axis = 0; axis < from.size(); ++axis) {
        const std::int64_t value = value_of(from[axis], at, symbols);
        ASSERT_TRUE(value >= 0 && value < chain.front()[axis].evaluate(symbols)) << from[axis].to_string() << " = " << value;
      }
    }
  }
}

/// A random expression over three variables that is never negative, with its value at `point` worked out beside it.
struct Sampled {
  Index index;
  std::int64_t value;
};

Sampled random_index(std::mt19937& random, const std::vector<Index>& variables, const std::vector<std::int64_t>& point, int depth) {
  const auto pick = [&](int below) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(below)); };
  if (depth == 0) {
    const auto i = static_cast<std::size_t>(pick(3));
    return {variables[i], point[i]};
  }
  const Sampled a = random_index(random, variables, point, depth - 1), b = random_index(random, variables, point, depth - 1);
  const std::int64_t factor = pick(4) + 1;
  switch (pick(4)) {
    case 0: return {a.index + b.index * factor, a.value + b.value * factor};
    case 1: return {a.index * factor + Index(factor), a.value * factor + factor};
    case 2: return {Index::quotient(a.index + b.index, factor + 1), (a.value + b.value) / (factor + 1)};
    default: return {Index::remainder(a.index + b.index * 2, factor + 1), (a.value + b.value * 2) % (factor + 1)};
  }
}

TEST(Index, SimplifyingKeepsTheValue) {
  std::mt19937 random(3);
  const std::vector<Index> at = variables({5, 6, 7});
  for (int round = 0; round < 3000; ++round) {
    const std::vector<std::int64_t> point{static_cast<std::int64_t>(random() % 5), static_cast<std::int64_t>(random() % 6),
                                          static_cast<std::int64_t>(random() % 7)};
    const Sampled sampled = random_index(random, at, point, 4);
    ASSERT_EQ(value_of(sampled.index, point, {}), sampled.value) << sampled.index.to_string();
    const auto top = sampled.index.upper(), bottom = sampled.index.lower();
    ASSERT_TRUE(!top || top->value() >= sampled.value) << sampled.index.to_string();
    ASSERT_TRUE(!bottom || bottom->value() <= sampled.value) << sampled.index.to_string();
  }
}

TEST(Index, NumeratorsThatMayBeNegativeStayWhole) {
  const Index i = Index::variable(0, 9);
  for (std::int64_t value = 0; value < 9; ++value) {
    EXPECT_EQ(value_of(Index::quotient(i - 4, 3), {value}, {}), (value + 2) / 3 - 2) << value;
    EXPECT_EQ(value_of(Index::remainder(i - 4, 3), {value}, {}), (value + 2) % 3) << value;
  }
}

TEST(Index, SubstitutionSimplifiesAgain) {
  const Index i = Index::variable(0, 12), inner = Index::variable(1, 4) * 3 + Index::variable(2, 3);
  const Index split = Index::quotient(i, 3) + Index::remainder(i, 3) * 10;
  EXPECT_EQ(split.substitute([&](const Atom&) { return inner; }), Index::variable(1, 4) + Index::variable(2, 3) * 10);
}

TEST(Index, AxesOfSizeZeroAreNoDivision) {
  const std::vector<Index> from = through({{0, 3}, {3, 0}});
  EXPECT_EQ(from.size(), 2u);
}

}  // namespace
}  // namespace rlx
