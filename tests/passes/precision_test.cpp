// What a precision policy makes of products, against plain loops; and what it leaves alone.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include <fmt/format.h>

#include "ops/evaluated.h"
#include "passes/expand.h"
#include "passes/kernels_only.h"
#include "passes/precision.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

Graph primitives(const Graph& graph) {
  return expand(graph, [](const Graph&, const Node&) { return false; });
}
PreciseGraph in_precision(const Graph& graph, Precision precision) { return with_precision(primitives(graph), precision); }

/// y = x w for x: f32[B,96], w: f32[96,40] transposed from a parameter.
Graph layer() {
  Graph graph("layer");
  const Value x = graph.input("x", {Dim::symbol("B", 64), 96}, f32), w = graph.param("w", {40, 96}, f32);
  graph.output("y", matmul(x, transpose(w, {1, 0})));
  return graph;
}
std::map<std::string, Array> layer_values(std::int64_t rows) {
  return {{"x", uniform(f32, {rows, 96}, -2, 3, 1)}, {"w", uniform(f32, {40, 96}, -1, 1, 2)}};
}

double rounded_to(DType dtype, double x) {
  Array narrow(dtype, {});
  narrow.set_double(0, x);
  return narrow.get_double(0);
}

/// x w with each operand through a function of (array, row, element).
template <class Left, class Right>
Doubles product_of(const std::map<std::string, Array>& given, Left left, Right right) {
  const std::int64_t rows = given.at("x").shape()[0];
  Doubles y;
  for (std::int64_t m = 0; m < rows; ++m)
    for (std::int64_t n = 0; n < 40; ++n) {
      double total = 0;
      for (std::int64_t k = 0; k < 96; ++k) total += left(given.at("x"), m, k) * right(given.at("w"), n, k);
      y.push_back(total);
    }
  return y;
}

double bf16_element(const Array& a, std::int64_t row, std::int64_t k) { return rounded_to(bf16, a.get_double(row * 96 + k)); }

/// x and w with the factors between them that bring elements which stand out nearer: the fourth root of a row's largest weight, as a share.
std::map<std::string, Array> balanced(const std::map<std::string, Array>& given) {
  const Array &given_x = given.at("x"), &given_w = given.at("w");
  Array x(f32, given_x.shape()), w(f32, given_w.shape());
  std::vector<float> largest(96, 0);
  for (std::int64_t i = 0; i < w.size(); ++i)
    largest[static_cast<std::size_t>(i % 96)] =
        std::max(largest[static_cast<std::size_t>(i % 96)], std::abs(static_cast<float>(given_w.get_double(i))));
  const float most = *std::max_element(largest.begin(), largest.end());
  const auto factor = [&](std::int64_t i) {
    return std::sqrt(std::sqrt(std::max(largest[static_cast<std::size_t>(i % 96)] / most, 1e-30F)));
  };
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<float>(given_x.get_double(i)) * factor(i));
  for (std::int64_t i = 0; i < w.size(); ++i) w.set_double(i, static_cast<float>(given_w.get_double(i)) / factor(i));
  return {{"x", x}, {"w", w}};
}

/// An element of x as the nearest of 256 numbers from the least of its row to the largest, computed in f32 as the kernels do.
double activation_element(const Array& a, std::int64_t row, std::int64_t k) {
  const auto at = [&](std::int64_t i) { return static_cast<float>(a.get_double(row * 96 + i)); };
  float least = at(0), largest = at(0);
  for (std::int64_t i = 0; i < 96; ++i) least = std::min(least, at(i)), largest = std::max(largest, at(i));
  const float size = largest - least;
  if (size == 0) return least;
  const float number = std::nearbyint((at(k) - least) * (255.0F / size) - 128.0F);
  return double{number} * double{size / 255.0F} + double{least + 128.0F * (size / 255.0F)};
}

/// An element of w as the nearest of 255 multiples of 1/127 of the largest of its column.
double weight_element(const Array& a, std::int64_t row, std::int64_t k) {
  float largest = 0;
  for (std::int64_t i = 0; i < 96; ++i) largest = std::max(largest, std::abs(static_cast<float>(a.get_double(row * 96 + i))));
  if (largest == 0) return 0;
  const float number = std::nearbyint(static_cast<float>(a.get_double(row * 96 + k)) * (127.0F / largest));
  return double{number} * double{largest / 127.0F};
}

TEST(Precision, Bf16RoundsTheOperandsOfAProduct) {
  const auto given = layer_values(7);
  const PreciseGraph precise = in_precision(layer(), Precision::bf16);
  ASSERT_EQ(precise.choices.size(), 1u);
  EXPECT_EQ(precise.choices[0].precision, Precision::bf16);
  // The result is rounded to f32 once: values up to 100.
  expect_near(evaluate(precise.graph, given)[0], product_of(given, bf16_element, bf16_element), 1e-5);
}

double f32_element(const Array& a, std::int64_t row, std::int64_t k) { return a.get_double(row * 96 + k); }
double f16_element(const Array& a, std::int64_t row, std::int64_t k) { return rounded_to(f16, f32_element(a, row, k)); }

TEST(Precision, F16RoundsTheWeightsOfAProduct) {
  const auto given = layer_values(7);
  const PreciseGraph precise = in_precision(layer(), Precision::f16);
  ASSERT_EQ(precise.choices.size(), 1u);
  EXPECT_EQ(precise.choices[0].precision, Precision::f16);
  // The result is rounded to f32 once: values up to 100.
  expect_near(evaluate(precise.graph, given)[0], product_of(given, f32_element, f16_element), 1e-5);
}

/// Columns with weights beyond the largest f16 have a scale; others are as without them. A weight that is no number spoils its column only.
TEST(Precision, F16TakesWeightsOverAllOfF32) {
  auto given = layer_values(3);
  const Array plain = evaluate(in_precision(layer(), Precision::f16).graph, given)[0];
  constexpr double factor = 1e30;
  for (std::int64_t k = 0; k < 96; ++k) given["w"].set_double(5 * 96 + k, given["w"].get_double(5 * 96 + k) * factor);
  given["w"].set_double(9 * 96 + 5, INFINITY);
  const Array seen = evaluate(in_precision(layer(), Precision::f16).graph, given)[0], wide = evaluate(layer(), given)[0];
  for (std::int64_t i = 0; i < seen.size(); ++i) {
    if (i % 40 == 9) EXPECT_FALSE(std::isfinite(seen.get_double(i))) << i;
    else if (i % 40 == 5) EXPECT_NEAR(seen.get_double(i) / factor, wide.get_double(i) / factor, 96 * 3 * 0x1p-12) << i;  // half a step each
    else EXPECT_EQ(seen.get_double(i), plain.get_double(i)) << i;
  }
}

TEST(Precision, F16LeavesWhatHasNoWeightInF32) {
  Graph graph("rest");
  const Value x = graph.input("x", {4, 8, 32}, f32);
  graph.output("scores", matmul(x, transpose(x, {0, 2, 1})));
  graph.output("left", matmul(graph.param("w", {8, 8}, f32), reshape(x, {8, 128})));
  graph.output("each", matmul(x, graph.param("e", {4, 32, 24}, f32)));
  graph.output("attention", attention(reshape(x, {1, 4, 8, 32}), reshape(x, {1, 4, 8, 32}), reshape(x, {1, 4, 8, 32})));
  graph.output("layer", matmul(x, graph.param("l", {32, 24}, f32)));
  graph.output("few", matmul(x, graph.param("f", {32, 8}, f32)));
  std::multiset<std::string> reasons;
  for (const PrecisionChoice& choice : with_precision(graph, Precision::f16).choices) reasons.emplace(choice.reason);
  EXPECT_EQ(reasons, (std::multiset<std::string>{"", "a weight for each item of a batch", "it sums fewer than 16 products",
                                                 "its columns are few", "no operand is a weight", "no operand is a weight"}));
}

TEST(Precision, StatesAreNoWeights) {
  Graph graph;
  const Value x = graph.input("x", {8, 96}, f32), w = graph.state("w", {40, 96}, f32);
  graph.output("y", linear(x, w));
  for (const Precision precision : {Precision::f16, Precision::int8}) {
    const auto choices = in_precision(graph, precision).choices;
    ASSERT_EQ(choices.size(), 1u);
    EXPECT_EQ(choices[0].precision, Precision::f32) << name(precision);
    EXPECT_EQ(choices[0].reason, "its weight is a state, which runs may change: it would be rounded in every run");
  }
  EXPECT_EQ(in_precision(graph, Precision::bf16).choices.at(0).precision, Precision::bf16);
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f16, Precision::int8})
    EXPECT_EQ(precision_named(name(precision)), precision);
}

TEST(Precision, Int8ScalesRowsAndColumns) {
  auto given = layer_values(7);
  for (std::int64_t k = 0; k < 96; ++k) given["x"].set_double(3 * 96 + k, 0);                              // a row of zeros
  for (std::int64_t k = 0; k < 96; ++k) given["w"].set_double(5 * 96 + k, 1e-4 * static_cast<double>(k));  // a small column
  const PreciseGraph precise = in_precision(layer(), Precision::int8);
  ASSERT_EQ(precise.choices.size(), 1u);
  EXPECT_EQ(precise.choices[0].precision, Precision::int8);
  // Two products in f32 with the scales: values up to 100.
  expect_near(evaluate(precise.graph, given)[0], product_of(balanced(given), activation_element, weight_element), 3e-5);
}

/// Sums of f32 in another order; in int8 a quotient that lies between two numbers may be rounded to either by a kernel.
TEST(Precision, KernelsComputeWhatTheRewrittenGraphSays) {
  const auto given = layer_values(33);
  for (const Precision precision : {Precision::bf16, Precision::f16, Precision::int8})
    for (const bool claims : {true, false}) {
      SessionOptions options = without_disk();
      options.precision = precision;
      options.claims = claims;
      Executable program = Session(Device::cpu(), options).compile(layer());
      program.set_param("w", given.at("w"));
      const double tolerance = precision != Precision::int8 ? 5e-5 : 5e-5 + 5.0 / 255;  // one step of 5/255 times a weight of 1
      expect_near(program.run({{"x", given.at("x")}}).at("y"), values_of(evaluate(in_precision(layer(), precision).graph, given)[0]),
                  tolerance);
      EXPECT_EQ(count_of(program, "precision"), 1u);
    }
}

// The difference of two elements is then beyond f32, though the sums are not.
TEST(Precision, Int8TakesRowsOverAllOfF32) {
  auto given = layer_values(7);
  constexpr double largest = 3.4e38, weight = 1e-4;
  for (std::int64_t k = 0; k < 96; ++k) given["x"].set_double(2 * 96 + k, given["x"].get_double(k) > 0 ? largest : -largest);
  for (std::int64_t i = 0; i < 40 * 96; ++i) given["w"].set_double(i, given["w"].get_double(i) * weight);
  const Doubles exact = product_of(
      given, [](const Array& x, std::int64_t m, std::int64_t k) { return x.get_double(m * 96 + k); },
      [](const Array& w, std::int64_t n, std::int64_t k) { return w.get_double(n * 96 + k); });
  const Array seen = evaluate(in_precision(layer(), Precision::int8).graph, given)[0];
  // 96 weights are each half a step of 1/127 off, as are elements of 2/255; f32 adds little to that.
  for (std::int64_t n = 0; n < 40; ++n)
    EXPECT_NEAR(seen.get_double(2 * 40 + n), exact[static_cast<std::size_t>(2 * 40 + n)],
                96 * largest * weight * (0.51 / 127 + 1.01 / 255));
}

TEST(Precision, ARowGivesTheSameBitsInEveryBatchAndAtAnyNumberOfThreads) {
  const auto given = layer_values(33);
  Array alone(f32, {1, 96});
  for (std::int64_t k = 0; k < 96; ++k) alone.set_double(k, given.at("x").get_double(20 * 96 + k));
  for (const Precision precision : {Precision::bf16, Precision::f16, Precision::int8}) {
    std::vector<Array> results;
    for (const int threads : {1, 2}) {
      SessionOptions options = without_disk();
      options.precision = precision;
      options.threads = threads;
      Executable program = Session(Device::cpu(), options).compile(layer());
      program.set_param("w", given.at("w"));
      results.push_back(program.run({{"x", given.at("x")}}).at("y"));
      const Array row = program.run({{"x", alone}}).at("y");
      for (std::int64_t n = 0; n < 40; ++n) EXPECT_EQ(row.get_double(n), results.back().get_double(20 * 40 + n));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(Precision, OtherOpsAndTypesStayAsTheyAre) {
  Graph graph("rest");
  const Value ids = graph.input("ids", {6}, i32), mask = graph.input("mask", {6}, boolean), table = graph.param("table", {50, 32}, f32);
  const Value rows = embedding(table, ids), wide = graph.input("wide", {6, 32}, f64);
  graph.output("rows", softmax(select(reshape(mask, {6, 1}), layer_norm(rows, graph.param("g", {32}, f32)), rows), 1));
  graph.output("integers", matmul(reshape(ids, {1, 6}), ids));
  graph.output("wide", matmul(wide, transpose(wide, {1, 0})));
  graph.output("short", matmul(slice_axis(rows, 1, 0, 8), graph.param("short_w", {8, 32}, f32)));
  graph.output("once", matmul(graph.param("a", {32, 32}, f32), graph.param("b", {32, 32}, f32)));
  graph.output("depthwise", conv(graph.input("image", {1, 16, 9}, f32), graph.param("filter", {16, 1, 3}, f32), {}, {}, {}, 16));
  for (const Precision precision : {Precision::bf16, Precision::int8}) {
    const PreciseGraph precise = in_precision(graph, precision);
    EXPECT_TRUE(structurally_equal(precise.graph, primitives(graph)));
    EXPECT_EQ(precise.choices.size(), 3u);
    for (const PrecisionChoice& choice : precise.choices) {
      EXPECT_EQ(choice.precision, Precision::f32);
      EXPECT_FALSE(choice.reason.empty());
    }
  }
}

TEST(Precision, WeightsInBlocksStayBlocks) {
  Graph graph("blocks");
  const Value x = graph.input("x", {3, 256}, f32);
  graph.output("y", block_dot(x, graph.param("w", {40, 144}, u8), "Q4_K"));
  graph.output("z", grouped_block_dot(x, graph.param("v", {2, 7, 272}, u8), graph.input("expert", {3}, i32), "Q8_0"));
  for (const Precision precision : {Precision::bf16, Precision::f16, Precision::int8}) {
    const PreciseGraph precise = with_precision(graph, precision);
    EXPECT_TRUE(structurally_equal(precise.graph, expand(graph, [](const Graph&, const Node&) { return true; })));
    ASSERT_EQ(precise.choices.size(), 2u);
    for (const PrecisionChoice& choice : precise.choices) {
      EXPECT_EQ(choice.precision, Precision::f32);
      EXPECT_EQ(choice.reason, "its weights are blocks");
    }
  }
}

TEST(Precision, F32IsAsWritten) {
  const Graph graph = primitives(layer());
  const PreciseGraph precise = with_precision(graph, Precision::f32);
  EXPECT_TRUE(structurally_equal(precise.graph, graph));
  EXPECT_TRUE(precise.choices.empty());
}

TEST(Precision, Int8LeavesProductsOfActivationsInF32) {
  Graph graph("scores");
  const Value x = graph.input("x", {4, 8, 32}, f32);
  graph.output("y", matmul(x, transpose(x, {0, 2, 1})));
  const PreciseGraph precise = in_precision(graph, Precision::int8);
  ASSERT_EQ(precise.choices.size(), 1u);
  EXPECT_EQ(precise.choices[0].precision, Precision::f32);
  EXPECT_EQ(in_precision(graph, Precision::bf16).choices[0].precision, Precision::bf16);
}

/// What moves elements is done to the bf16 value, so that it can be stored instead of the f32 one.
TEST(Precision, Bf16IsRoundedBelowWhatMovesIt) {
  Graph graph("moved");
  const Value x = graph.input("x", {16, 4, 32}, f32), heads = transpose(tanh(x), {1, 0, 2});
  graph.output("y", matmul(heads, transpose(heads, {0, 2, 1})));
  const Graph precise = in_precision(graph, Precision::bf16).graph;
  int moved = 0, rounded = 0;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(precise.size()); ++id) {
    const Node& node = precise.node(id);
    moved += node.op->name == "transpose" && node.results[0].dtype == bf16;
    rounded += node.op->name == "cast" && node.results[0].dtype == bf16;
  }
  EXPECT_EQ(moved, 2);
  EXPECT_EQ(rounded, 1);
}

/// Rows of what a run computes are rounded before a table names them; the table of a model is not rounded for the rows that are named.
TEST(Precision, Bf16IsRoundedBelowAGatherOfWhatIsComputed) {
  const auto types = [](bool computed) {
    Graph graph("gathered");
    const Value table = graph.param("table", {64, 32}, f32), rows = graph.input("rows", {16, 1}, i32), w = graph.param("w", {32, 32}, f32);
    graph.output("y", matmul(gather(computed ? tanh(table) : table, rows, {{1}, {0}, {0}}, {1, 32}), w));
    const Graph precise = in_precision(graph, Precision::bf16).graph;
    std::set<std::string> found;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(precise.size()); ++id) {
      const Node& node = precise.node(id);
      if (node.op->name == "gather" || (node.op->name == "cast" && node.results[0].dtype == bf16))
        found.insert(fmt::format("{} {}", node.op->name, node.results[0].to_string()));
    }
    return found;
  };
  EXPECT_TRUE(types(true).contains("cast bf16[64,32]") && types(true).contains("gather bf16[16,32]"));
  EXPECT_FALSE(types(true).contains("cast bf16[16,32]"));
  EXPECT_TRUE(types(false).contains("gather f32[16,32]") && types(false).contains("cast bf16[16,32]"));
  EXPECT_FALSE(types(false).contains("cast bf16[64,32]"));
}

/// A weight that is no number spoils its column, and one without columns is left alone.
TEST(Precision, Int8KeepsColumnsApart) {
  auto given = layer_values(3);
  given["w"].set_double(7 * 96 + 5, INFINITY);
  given["w"].set_double(9 * 96 + 5, NAN);
  const Array seen = evaluate(in_precision(layer(), Precision::int8).graph, given)[0], wide = evaluate(layer(), given)[0];
  for (std::int64_t i = 0; i < seen.size(); ++i) {
    if (i % 40 == 7 || i % 40 == 9) EXPECT_FALSE(std::isfinite(seen.get_double(i))) << i;
    else EXPECT_NEAR(seen.get_double(i), wide.get_double(i), 1) << i;  // 96 products with steps of 5/255 and 1/127
  }
  Graph none("none");
  none.output("y", matmul(none.input("x", {Dim::symbol("B", 8), 64}, f32), none.param("w", {64, 0}, f32)));
  EXPECT_EQ(in_precision(none, Precision::int8).choices.at(0).reason, "its weight has no elements");
}

/// Whether attention is claimed or computed from its body, the policies say the same about it, and the results agree.
TEST(Precision, AttentionIsDecidedBeforeClaims) {
  Graph graph("scores");
  const Value x = graph.input("x", {2, 3, 20, 32}, f32);
  graph.output("y", attention(x, x, x, {.causal = true}));
  const std::map<std::string, Array> given{{"x", uniform(f32, {2, 3, 20, 32}, -1, 1, 3)}};
  Array rounded(f32, {2, 3, 20, 32});
  for (std::int64_t i = 0; i < rounded.size(); ++i) rounded.set_double(i, rounded_to(bf16, given.at("x").get_double(i)));
  const Array exact = evaluate(graph, {{"x", rounded}})[0];
  for (const Precision precision : {Precision::bf16, Precision::int8}) {
    for (const bool claims : {true, false}) {
      SessionOptions options = without_disk();
      options.precision = precision;
      options.claims = claims;
      const Executable program = Session(Device::cpu(), options).compile(graph);
      // The result is below 1 and rounded to 8 bits; a sum of f32 that lies between two of their numbers may go to either.
      expect_near(program.run({{"x", given.at("x")}}).at("y"), values_of(exact), 0x1p-8);
      EXPECT_EQ(count_of(program, "precision"), 1u);
      const Array seen = program.run({{"x", given.at("x")}}).at("y");
      for (double y : values_of(seen)) EXPECT_EQ(y, rounded_to(bf16, y));
    }
    const PreciseGraph precise = with_precision(graph, precision);
    ASSERT_EQ(precise.choices.size(), 1u);
    EXPECT_EQ(precise.choices[0].product, "attention: f32[2,3,20,32] x f32[2,3,20,32]");
    EXPECT_EQ(precise.choices[0].precision, Precision::bf16);
  }
}

/// So that the claim stores each element where it is read.
TEST(Precision, AttentionIsWidenedBehindWhatMovesIt) {
  Graph graph("moved");
  const Value x = graph.input("x", {1, 4, 8, 32}, f32);
  graph.output("y", reshape(transpose(attention(x, x, x), {0, 2, 1, 3}), {8, 128}) * 2);
  for (const Precision precision : {Precision::bf16, Precision::int8}) {
    const Graph precise = with_precision(graph, precision).graph;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(precise.size()); ++id) {
      const Node& node = precise.node(id);
      if (node.op->name == "transpose" || node.op->name == "reshape") {
        EXPECT_EQ(node.results[0].dtype, bf16) << node.op->name;
      }
    }
  }
}

/// As bf16 all that is kept would be rounded in every run.
TEST(Precision, KeysThatAreKeptInF32StayF32) {
  Graph graph("token");
  const Value x = graph.input("x", {1, 2, 1, 32}, f32), at = graph.input("at", {}, i32), zero = scalar(x, 0, i32);
  const Value all = dynamic_update(graph.state("keys", {1, 2, 40, 32}, f32), x, {zero, zero, at, zero});
  graph.output("keys", all);
  graph.output("y", attention(x, all, all));
  for (const Precision precision : {Precision::bf16, Precision::int8}) {
    const PreciseGraph precise = with_precision(graph, precision);
    ASSERT_EQ(precise.choices.size(), 1u);
    EXPECT_EQ(precise.choices[0].precision, Precision::f32);
    EXPECT_EQ(precise.choices[0].reason, "its keys are kept in f32");
  }
}

int casts_to_i8(const Graph& graph, const Dim& rows) {
  int casts = 0;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
    const Node& node = graph.node(id);
    casts += node.op->name == "cast" && node.results[0] == Type{i8, {rows, 96}};
  }
  return casts;
}

/// Queries, keys and values: what they read is rounded once, with the factors of all their weights, as that of one product with all
/// columns.
TEST(Precision, Int8RoundsOnceWhatSeveralProductsRead) {
  const Dim rows = Dim::symbol("B", 64);
  Graph apart("apart"), together("together");
  const Value x = apart.input("x", {rows, 96}, f32), all = together.input("x", {rows, 96}, f32);
  // The second weight is made after the first product.
  const Value first = matmul(x, transpose(apart.param("w", {40, 96}, f32), {1, 0}));
  apart.output("first", first);
  apart.output("second", matmul(x, transpose(apart.param("v", {24, 96}, f32) * 3, {1, 0})));
  apart.output("other", matmul(first, apart.param("u", {40, 24}, f32)));
  const Value joined = concat({together.param("w", {40, 96}, f32), together.param("v", {24, 96}, f32) * 3}, 0);
  const Value y = matmul(all, transpose(joined, {1, 0}));
  together.output("first", slice_axis(y, 1, 0, 40));
  together.output("second", slice_axis(y, 1, 40, 64));

  const Graph precise = in_precision(apart, Precision::int8).graph;
  EXPECT_EQ(casts_to_i8(precise, rows), 1);
  std::map<std::string, Array> given = layer_values(7);
  given["v"] = uniform(f32, {24, 96}, -1, 1, 3);
  const std::vector<Array> one = evaluate(in_precision(together, Precision::int8).graph, given);
  given["u"] = uniform(f32, {40, 24}, -1, 1, 4);
  const std::vector<Array> several = evaluate(precise, given);
  EXPECT_EQ(several[0], one[0]);
  EXPECT_EQ(several[1], one[1]);
}

TEST(Precision, BodiesOfLoopsFollow) {
  Graph graph("loop");
  const Value x = graph.input("x", {5, 4, 32}, f32), w = graph.param("w", {32, 32}, f32);
  const auto step = [&](const Values& carry, const Values& slice) {
    const Value h = tanh(carry[0]);
    const Value next = matmul(h, w), score = matmul(slice[0], transpose(h, {1, 0}));
    return std::pair{Values{next + sum_all(score)}, Values{}};
  };
  graph.output("y", scan(step, {graph.input("start", {4, 32}, f32)}, {x})[0]);
  const PreciseGraph precise = in_precision(graph, Precision::bf16);
  ASSERT_EQ(precise.choices.size(), 2u);
  EXPECT_EQ(precise.choices[0].reason, "its weight would be rounded in every step");
  EXPECT_EQ(precise.choices[1].precision, Precision::bf16);
  EXPECT_EQ(in_precision(graph, Precision::int8).choices[0].reason, precise.choices[0].reason);
}

}  // namespace
}  // namespace rlx::test
