// What a precision policy makes of convolutions.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"
#include "ops/cosine.h"
#include "ops/evaluated.h"
#include "passes/expand.h"
#include "passes/kernels_only.h"
#include "passes/precision.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

using Ints = std::vector<std::int64_t>;

struct ConvCase {
  std::string name;
  Ints x, w, strides, padding, dilation;
  std::int64_t groups = 1;
};

/// Runs of neighbours of every length in a panel of rows, depths that are no multiple of 2 or 4, all ranks; enough output channels for
/// int8.
const std::vector<ConvCase>& conv_cases() {
  static const std::vector<ConvCase> all{
      {"1 x 1", {2, 20, 15, 17}, {210, 20, 1, 1}, {1}, {0}, {1}},
      {"1 x 1, strided", {2, 21, 14, 15}, {810, 21, 1, 1}, {2}, {0}, {1}},
      {"3 x 3", {1, 7, 30, 31}, {37, 7, 3, 3}, {1}, {1}, {1}},
      {"3 x 3 of short lines", {3, 9, 5, 3}, {34, 9, 3, 3}, {1}, {1}, {1}},
      {"3 x 3 of 7 x 7", {2, 16, 7, 7}, {32, 16, 3, 3}, {1}, {1}, {1}},
      {"3 x 3, strided and dilated", {2, 6, 19, 24}, {60, 6, 3, 3}, {2, 1}, {1}, {1, 2}},
      {"7 x 7, strided", {1, 3, 40, 40}, {22, 3, 7, 7}, {2}, {3}, {1}},
      {"several passes over the depth", {1, 300, 6, 7}, {30, 300, 3, 3}, {1}, {1}, {1}},
      {"along one axis", {4, 8, 100}, {50, 8, 5}, {1}, {2}, {2}},
      {"along three axes", {1, 4, 6, 7, 8}, {41, 4, 2, 3, 2}, {1, 2, 1}, {1, 0, 1}, {1}},
  };
  return all;
}

/// Groups that are products by themselves.
const std::vector<ConvCase>& grouped_cases() {
  static const std::vector<ConvCase> all{
      {"2 groups", {2, 32, 9, 10}, {64, 16, 3, 3}, {1}, {1}, {1}, 2},
      {"4 groups, dilated", {1, 64, 12, 11}, {72, 16, 3, 3}, {1}, {1}, {2}, 4},
      {"8 groups of few channels and many terms", {1, 128, 7, 7}, {96, 16, 3, 3}, {1}, {1}, {1}, 8},
  };
  return all;
}

/// Groups of few output channels and few terms.
const std::vector<ConvCase>& summed_cases() {
  static const std::vector<ConvCase> all{
      {"8 groups of 4", {1, 32, 14, 13}, {32, 4, 3, 3}, {1}, {1}, {1}, 8},
      {"depthwise", {2, 24, 15, 17}, {24, 1, 3, 3}, {1}, {1}, {1}, 24},
      {"depthwise, two filters each, strided and dilated", {1, 12, 21, 20}, {24, 1, 5, 5}, {2}, {3, 1}, {1, 2}, 12},
      {"depthwise along one axis", {3, 16, 50}, {16, 1, 7}, {1}, {3}, {1}, 16},
      {"depthwise of 7 x 7", {1, 8, 19, 18}, {8, 1, 7, 7}, {1}, {3}, {1}, 8},
  };
  return all;
}

Dims dims(const Ints& sizes) { return {sizes.begin(), sizes.end()}; }

Graph graph_of(const ConvCase& c) {
  Graph graph("conv");
  graph.output("y", conv(graph.input("x", dims(c.x), f32), graph.param("w", dims(c.w), f32), c.strides, c.padding, c.dilation, c.groups));
  return graph;
}

/// Numbers of a normal distribution, as weights and activations are, negative ones of x cut to zero as behind a ReLU.
std::map<std::string, Array> inputs_of(const ConvCase& c) {
  std::mt19937 bits(7);
  std::normal_distribution<double> normal;
  std::map<std::string, Array> given{{"x", Array(f32, c.x)}, {"w", Array(f32, c.w)}};
  for (std::int64_t i = 0; i < given["x"].size(); ++i) given["x"].set_double(i, std::max(0.0, normal(bits)));
  for (std::int64_t i = 0; i < given["w"].size(); ++i) given["w"].set_double(i, normal(bits));
  return given;
}

PreciseGraph conv_in(const Graph& graph, Precision precision) {
  return with_precision(expand(graph, [](const Graph&, const Node&) { return false; }), precision);
}

double depth_of(const ConvCase& c) {
  double terms = 1;
  for (std::size_t i = 1; i < c.w.size(); ++i) terms *= static_cast<double>(c.w[i]);
  return terms;
}

Array rounded(const Array& wide) {
  Array narrow(bf16, wide.shape()), back(f32, wide.shape());
  for (std::int64_t i = 0; i < wide.size(); ++i) {
    narrow.set_double(i, wide.get_double(i));
    back.set_double(i, narrow.get_double(i));
  }
  return back;
}

void expect_rounded_operands(const ConvCase& c) {
  const Graph graph = graph_of(c);
  const auto given = inputs_of(c);
  const PreciseGraph precise = conv_in(graph, Precision::bf16);
  ASSERT_EQ(precise.choices.at(0).precision, Precision::bf16) << c.name;
  const Array wanted = evaluate(graph, {{"x", rounded(given.at("x"))}, {"w", rounded(given.at("w"))}})[0];
  EXPECT_EQ(evaluate(precise.graph, given)[0], wanted) << c.name;
}

TEST(ConvPrecision, Bf16RoundsTheOperands) {
  for (const ConvCase& c : conv_cases()) expect_rounded_operands(c);
}

/// bf16 keeps 8 bits: each operand is off by 2^-9 / sqrt(3) of itself on average, so the cosine by half the sum of the two squares, 2.5e-6.
/// In int8 a step of x is 1/255 of about 4.5 deviations and one of w 1/127 of about 3.5: off by 0.005 and 0.008 deviations on average. As
/// those of x are of half a normal distribution, of deviation 0.58 and square 0.5, the cosine is off by 7e-5 or so.
TEST(ConvPrecision, ResultsStayCloseToThoseInF32) {
  for (const ConvCase& c : conv_cases()) {
    const auto given = inputs_of(c);
    const Array wide = evaluate(graph_of(c), given)[0];
    EXPECT_GE(cosine_of(evaluate(conv_in(graph_of(c), Precision::bf16).graph, given)[0], wide), 0.99999) << c.name;
    const PreciseGraph in_int8 = conv_in(graph_of(c), Precision::int8);
    ASSERT_EQ(in_int8.choices.at(0).precision, Precision::int8) << c.name;
    EXPECT_GE(cosine_of(evaluate(in_int8.graph, given)[0], wide), 0.9998) << c.name;
  }
}

SessionOptions options_of(Precision precision, int threads, bool claims) {
  SessionOptions options = without_disk();
  options.precision = precision;
  options.threads = threads;
  options.claims = claims;
  return options;
}

Array computed(const Graph& graph, const std::map<std::string, Array>& given, const SessionOptions& options) {
  Executable program = Session(Device::cpu(), options).compile(graph);
  program.set_param("w", given.at("w"));
  return program.run({{"x", given.at("x")}}).at("y");
}

/// Terms of bf16 products are below 20 and of random signs: 3 sqrt(depth) of them, and as many roundings of 2^-24. In int8 a quotient that
/// lies between two numbers may be rounded to either: one step of x, at most 5 deviations in 255, times a weight of at most 5.
TEST(ConvPrecision, KernelsComputeWhatTheRewrittenGraphSays) {
  for (const ConvCase& c : conv_cases())
    for (const Precision precision : {Precision::bf16, Precision::int8})
      for (const bool claims : {true, false}) {
        if (!claims && c.name != "3 x 3 of 7 x 7") continue;  // the others take long then, and are the same ops
        const auto given = inputs_of(c);
        const double sums = 20 * 9 * depth_of(c) * 0x1p-24;
        const double tolerance = precision == Precision::bf16 ? sums : sums + 2 * 25.0 / 255;
        const Array wanted = evaluate(conv_in(graph_of(c), precision).graph, given)[0];
        const Array seen = computed(graph_of(c), given, options_of(precision, 2, claims));
        for (std::int64_t i = 0; i < wanted.size(); ++i)
          ASSERT_NEAR(seen.get_double(i), wanted.get_double(i), tolerance) << c.name << " at " << i;
      }
}

/// Where the level has such instructions, what multiplies is narrow.
TEST(ConvPrecision, NarrowKernelsMultiply) {
  const auto arithmetic = [](const ConvCase& c, Precision precision) {
    Executable program = Session(Device::cpu(), options_of(precision, 2, true)).compile(graph_of(c));
    const auto given = inputs_of(c);
    program.set_param("w", given.at("w"));
    std::string all;
    for (const LaunchReport& launch : program.profile({{"x", given.at("x")}}, 0))
      if (launch.kind == "claim") all += launch.arithmetic;
    return all;
  };
  const cpu::CpuLevel level = cpu::cpu_level();
  for (const ConvCase& c : conv_cases()) {
    EXPECT_EQ(arithmetic(c, Precision::bf16), cpu::has_micro_kernel<cpu::Bf16>(level) ? "bf16" : "f32") << c.name;
    EXPECT_EQ(arithmetic(c, Precision::int8), "int8") << c.name;
  }
}

TEST(ConvPrecision, AnImageGivesTheSameBitsInEveryBatchAndAtAnyNumberOfThreads) {
  const ConvCase together{"", {3, 24, 14, 14}, {32, 24, 3, 3}, {1}, {1}, {1}};
  ConvCase alone = together;
  alone.x[0] = 1;
  const auto given = inputs_of(together);
  const std::int64_t image = 24 * 14 * 14, result = 32 * 14 * 14;
  Array second(f32, alone.x);
  for (std::int64_t i = 0; i < image; ++i) second.set_double(i, given.at("x").get_double(image + i));
  for (const Precision precision : {Precision::bf16, Precision::int8}) {
    const Array one = computed(graph_of(together), given, options_of(precision, 1, true));
    EXPECT_EQ(computed(graph_of(together), given, options_of(precision, 2, true)), one);
    const Array by_itself = computed(graph_of(alone), {{"x", second}, {"w", given.at("w")}}, options_of(precision, 2, true));
    for (std::int64_t i = 0; i < result; ++i) ASSERT_EQ(by_itself.get_double(i), one.get_double(result + i)) << i;
  }
}

TEST(ConvPrecision, GroupsAreRoundedInBf16) {
  for (const ConvCase& c : grouped_cases()) expect_rounded_operands(c);
}

/// What each channel of x shows, as a calibration notes it.
Calibration calibration_of(const ConvCase& c, const std::map<std::string, Array>& given) {
  const Array& x = given.at("x");
  Array least(f32, {c.x[1]}), largest(f32, {c.x[1]});  // x is not negative
  const std::int64_t image = x.size() / c.x[0] / c.x[1];
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::int64_t channel = i / image % c.x[1];
    largest.set_double(channel, std::max(largest.get_double(channel), x.get_double(i)));
  }
  Calibration calibration;
  calibration.ranges.push_back({conv_in(graph_of(c), Precision::int8).choices.at(0).product, least, largest});
  return calibration;
}

PreciseGraph in_calibrated_int8(const ConvCase& c, const Calibration& calibration) {
  return with_precision(expand(graph_of(c), [](const Graph&, const Node&) { return false; }), Precision::int8, &calibration);
}

/// As for dense ones. A calibrated scale is one for all channels.
TEST(ConvPrecision, GroupsStayCloseToF32InInt8) {
  for (const ConvCase& c : grouped_cases()) {
    const auto given = inputs_of(c);
    const Array wide = evaluate(graph_of(c), given)[0];
    const PreciseGraph at_run_time = conv_in(graph_of(c), Precision::int8);
    ASSERT_EQ(at_run_time.choices.at(0).precision, Precision::int8) << c.name;
    EXPECT_GE(cosine_of(evaluate(at_run_time.graph, given)[0], wide), 0.9998) << c.name;
    EXPECT_GE(cosine_of(evaluate(in_calibrated_int8(c, calibration_of(c, given)).graph, given)[0], wide), 0.9998) << c.name;
  }
}

/// Channels and filters of very different sizes: the factors between them are those of their group.
TEST(ConvPrecision, GroupsInInt8KeepTheirChannelsApart) {
  const ConvCase& c = grouped_cases().at(0);
  auto given = inputs_of(c);
  const Array wide = evaluate(graph_of(c), given)[0];
  const std::int64_t image = c.x[2] * c.x[3], kernel = c.w[2] * c.w[3], per_group = c.w[0] / c.groups;
  const auto factor = [](std::int64_t channel) { return std::exp2(static_cast<double>(channel % 5) - 2); };
  for (std::int64_t i = 0; i < given["x"].size(); ++i) given["x"].set_double(i, given["x"].get_double(i) * factor(i / image % c.x[1]));
  for (std::int64_t i = 0; i < given["w"].size(); ++i) {
    const std::int64_t filter = i / kernel / c.w[1], channel = filter / per_group * c.w[1] + i / kernel % c.w[1];
    given["w"].set_double(i, given["w"].get_double(i) / factor(channel));
  }
  // Factors of 16 between channels cost each of both operands up to 4 of 255 steps after the square root between them.
  EXPECT_GE(cosine_of(evaluate(conv_in(graph_of(c), Precision::int8).graph, given)[0], wide), 0.9995);
  EXPECT_GE(cosine_of(evaluate(in_calibrated_int8(c, calibration_of(c, given)).graph, given)[0], wide), 0.9998);
}

void expect_kernels_compute(const ConvCase& c, const Graph& rewritten, SessionOptions options) {
  const auto given = inputs_of(c);
  const double sums = 20 * 9 * depth_of(c) * 0x1p-24;  // bounds as for dense ones
  const double tolerance = options.precision == Precision::int8 ? sums + 2 * 25.0 / 255 : sums;
  const Array wanted = evaluate(rewritten, given)[0], seen = computed(graph_of(c), given, options);
  for (std::int64_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(seen.get_double(i), wanted.get_double(i), tolerance) << c.name << " at " << i;
}

TEST(ConvPrecision, KernelsOfGroupsComputeWhatTheRewrittenGraphSays) {
  for (const ConvCase& c : grouped_cases()) {
    for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f16, Precision::int8})
      for (const bool claims : {true, false})
        expect_kernels_compute(c, conv_in(graph_of(c), precision).graph, options_of(precision, 2, claims));
    SessionOptions calibrated = options_of(Precision::int8, 2, true);
    calibrated.calibration = calibration_of(c, inputs_of(c));
    expect_kernels_compute(c, in_calibrated_int8(c, *calibrated.calibration).graph, calibrated);
  }
}

TEST(ConvPrecision, SumsOfShiftedElementsStayF32) {
  for (const ConvCase& c : summed_cases()) {
    for (const Precision precision : {Precision::bf16, Precision::f16, Precision::int8}) {
      const PrecisionChoice choice = conv_in(graph_of(c), precision).choices.at(0);
      EXPECT_EQ(choice.precision, Precision::f32) << c.name;
      EXPECT_EQ(choice.reason, "its few products an element are fastest in f32") << c.name;
    }
    for (const bool claims : {true, false}) expect_kernels_compute(c, graph_of(c), options_of(Precision::f32, 2, claims));
  }
}

TEST(ConvPrecision, GroupsWithManyChannelsAreClaimed) {
  const auto claims = [](const ConvCase& c) {
    Executable program = Session(Device::cpu(), options_of(Precision::bf16, 2, true)).compile(graph_of(c));
    const auto given = inputs_of(c);
    program.set_param("w", given.at("w"));
    const auto launches = program.profile({{"x", given.at("x")}}, 0);
    return std::count_if(launches.begin(), launches.end(), [](const LaunchReport& launch) { return launch.kind == "claim"; });
  };
  for (const ConvCase& c : grouped_cases()) EXPECT_EQ(claims(c), 1) << c.name;
  for (const ConvCase& c : summed_cases()) EXPECT_EQ(claims(c), 0) << c.name;
}

TEST(ConvPrecision, WhatIsNoProductStaysF32) {
  Graph graph("rest");
  const Value x = graph.input("x", {1, 32, 9, 9}, f32);
  graph.output("strided groups of the batch",
               conv_general(reshape(x, {2, 16, 9, 9}), graph.param("d", {8, 16, 5, 5}, f32), {.batch_group_count = 2}));
  graph.output("transposed", conv_transpose(x, graph.param("t", {32, 8, 3, 3}, f32), {2}));
  graph.output("short", conv(slice_axis(x, 1, 0, 3), graph.param("s", {8, 3, 2, 2}, f32)));
  graph.output("narrow", conv(x, graph.param("n", {64, 32, 1, 1}, f32)));
  graph.output("two activations", conv(x, graph.input("y", {8, 32, 3, 3}, f32)));
  for (const Precision precision : {Precision::bf16, Precision::int8}) {
    const auto choices = conv_in(graph, precision).choices;
    ASSERT_EQ(choices.size(), 5u);
    std::multiset<std::string> reasons;
    for (const PrecisionChoice& choice : choices) reasons.emplace(choice.reason);
    EXPECT_EQ(reasons.count("its windows are the rows of no matrix product"), 2u);
    EXPECT_EQ(reasons.count("it sums fewer than 16 products"), 1u);
    EXPECT_EQ(reasons.count("no operand is a weight"), precision == Precision::int8 ? 1u : 0u);
    EXPECT_EQ(reasons.count("its image's range takes longer than 8 bits save"), precision == Precision::int8 ? 1u : 0u);
  }
}

}  // namespace
}  // namespace rlx::test
