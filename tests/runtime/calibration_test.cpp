// int8 products with scales that runs on samples gave beforehand.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/cosine.h"
#include "ops/evaluated.h"
#include "passes/kernels_only.h"
#include "rlx/calibrator.h"

namespace rlx::test {
namespace calibration_test {

constexpr std::int64_t depth = 96, columns = 40;

Graph layer() {
  Graph graph("layer");
  graph.output("y", matmul(graph.input("x", {Dim::symbol("B", 64), depth}, f32), graph.param("w", {depth, columns}, f32)));
  return graph;
}
Graph image_layer() {
  Graph graph("image layer");
  graph.output("y", conv(graph.input("x", {Dim::symbol("B", 4), 12, 9, 9}, f32), graph.param("w", {20, 12, 3, 3}, f32), {1}, {1}));
  return graph;
}

Array weights() { return uniform(f32, {depth, columns}, -1, 1, 2); }
/// Some places with large numbers, as trained models have them, and one that never changes.
Array rows(std::int64_t count, unsigned seed) {
  Array x = uniform(f32, {count, depth}, -1, 2, seed);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::int64_t place = i % depth;
    if (place == 7) x.set_double(i, 30 * x.get_double(i));
    if (place == 9) x.set_double(i, 5);
  }
  return x;
}

Calibration calibrated(const Graph& graph, const Array& w, const std::vector<Array>& samples) {
  Calibrator calibrator(Session(Device::cpu(), without_disk()), graph);
  calibrator.executable().set_param("w", w);
  for (const Array& x : samples) calibrator.note(calibrator.executable().run({{"x", x}}));
  return calibrator.calibration();
}

Executable compiled(const Graph& graph, const Array& w, const Calibration& calibration, int threads = 2, bool claims = true) {
  SessionOptions options = without_disk();
  options.precision = Precision::int8;
  options.calibration = calibration;
  options.threads = threads;
  options.claims = claims;
  Executable program = Session(Device::cpu(), options).compile(graph);
  program.set_param("w", w);
  return program;
}

TEST(Calibration, NotesTheEndsOfEachPlace) {
  const Array first = rows(5, 1), second = rows(20, 3);
  const Calibration calibration = calibrated(layer(), weights(), {first, second});
  ASSERT_EQ(calibration.ranges.size(), 1u);
  EXPECT_EQ(calibration.ranges[0].product, "dot: f32[B,96] x f32[96,40]");
  for (std::int64_t k = 0; k < depth; ++k) {
    double least = first.get_double(k), largest = least;
    for (const Array* x : {&first, &second})
      for (std::int64_t i = k; i < x->size(); i += depth)
        least = std::min(least, x->get_double(i)), largest = std::max(largest, x->get_double(i));
    EXPECT_EQ(calibration.ranges[0].least.get_double(k), least) << k;
    EXPECT_EQ(calibration.ranges[0].largest.get_double(k), largest) << k;
  }
}

/// Uniform numbers over 1/254 and 1/127 of their ranges have errors of 0.4% of their size each, where all places count alike; the scales
/// that place 7 shares with its weights make those of the others at most a few times that. 1%: a cosine 5e-5 below 1.
TEST(Calibration, ResultsStayCloseToThoseInF32) {
  const Array w = weights(), x = rows(33, 5);
  const Array wide = evaluate(layer(), {{"x", x}, {"w", w}})[0];
  for (const bool claims : {true, false})
    EXPECT_GE(cosine_of(compiled(layer(), w, calibrated(layer(), w, {rows(64, 4)}), 2, claims).run({{"x", x}}).at("y"), wide), 0.9999);

  const Array filters = uniform(f32, {20, 12, 3, 3}, -1, 1, 6), images = uniform(f32, {2, 12, 9, 9}, -1, 2, 7);
  const Calibration of_images = calibrated(image_layer(), filters, {uniform(f32, {4, 12, 9, 9}, -1, 2, 8)});
  EXPECT_EQ(of_images.ranges.at(0).least.shape(), (std::vector<std::int64_t>{12}));
  const Array convolved = evaluate(image_layer(), {{"x", images}, {"w", filters}})[0];
  for (const bool claims : {true, false})
    EXPECT_GE(cosine_of(compiled(image_layer(), filters, of_images, 2, claims).run({{"x", images}}).at("y"), convolved), 0.9999);
}

TEST(Calibration, NoRangeIsFoundAtRunTime) {
  const Array w = weights();
  const auto launches = [&](const Executable& program) {
    const auto all = program.profile({{"x", rows(8, 5)}}, 0);
    return std::count_if(all.begin(), all.end(), [](const LaunchReport& launch) { return launch.kind != "prepared"; });
  };
  EXPECT_LE(launches(compiled(layer(), w, calibrated(layer(), w, {rows(8, 4)}))), 2);  // the rounded rows, and the product
}

/// Place 7 decides the scale: its ends are the ends of the 8 bits, and what is beyond counts as an end.
TEST(Calibration, WhatLeavesTheRangeCountsAsItsEnd) {
  const Array w = weights();
  Calibration calibration = calibrated(layer(), w, {rows(64, 4)});
  for (Array* ends : {&calibration.ranges[0].least, &calibration.ranges[0].largest}) {
    Array wider = *ends;
    wider.set_double(7, (ends == &calibration.ranges[0].least ? -1 : 1) * 1000.0);
    *ends = wider;
  }
  const Executable program = compiled(layer(), w, calibration);
  const auto with = [&](double element) {
    Array x = rows(3, 5);
    x.set_double(depth + 7, element);
    return program.run({{"x", x}}).at("y");
  };
  EXPECT_EQ(with(1000), with(1e9));
  EXPECT_EQ(with(1000), with(INFINITY));
  EXPECT_EQ(with(-1016), with(-1e30));  // i8 has one more number below
  EXPECT_FALSE(with(1000) == with(900));
}

TEST(Calibration, ARowGivesTheSameBitsInEveryBatchAndAtAnyNumberOfThreads) {
  const Array w = weights(), x = rows(33, 5);
  const Calibration calibration = calibrated(layer(), w, {rows(64, 4)});
  const Array one = compiled(layer(), w, calibration, 1).run({{"x", x}}).at("y");
  const Executable program = compiled(layer(), w, calibration, 2);
  EXPECT_EQ(program.run({{"x", x}}).at("y"), one);
  Array alone(f32, {1, depth});
  for (std::int64_t k = 0; k < depth; ++k) alone.set_double(k, x.get_double(20 * depth + k));
  const Array row = program.run({{"x", alone}}).at("y");
  for (std::int64_t n = 0; n < columns; ++n) EXPECT_EQ(row.get_double(n), one.get_double(20 * columns + n));
}

std::string error_with(const Graph& graph, const Calibration& calibration) {
  SessionOptions options = without_disk();
  options.precision = Precision::int8;
  options.calibration = calibration;
  return error_of([&] { Session(Device::cpu(), options).compile(graph); });
}

TEST(Calibration, OneOfAnotherGraphIsRefused) {
  const Calibration calibration = calibrated(layer(), weights(), {rows(4, 1)});
  EXPECT_EQ(error_with(image_layer(), calibration),
            "calibration: product 0 of graph 'image layer' is 'conv: f32[B,12,9,9] x f32[20,12,3,3]', but the calibration was made for "
            "'dot: f32[B,96] x f32[96,40]'");
  Graph two("two");
  const Value x = two.input("x", {Dim::symbol("B", 64), depth}, f32), w = two.param("w", {depth, columns}, f32);
  two.output("y", matmul(x, w));
  two.output("z", matmul(x, tanh(w)));
  EXPECT_EQ(error_with(two, calibration), "calibration: it has 1 products, but graph 'two' has another: 'dot: f32[B,96] x f32[96,40]'");
  Graph none("none");
  none.output("y", none.input("x", {3}, f32) * 2);
  EXPECT_EQ(error_with(none, calibration), "calibration: it has 1 products, but graph 'none' has 0");
  Calibration torn = calibration;
  torn.ranges[0].least = Array(f32, {3});
  EXPECT_EQ(error_with(layer(), torn), "calibration: ranges of 'dot: f32[B,96] x f32[96,40]' are f32[3], must be f32[96]");
}

TEST(Calibration, WhatCannotBeCalibratedIsRefused) {
  EXPECT_EQ(error_of([] { calibrated(layer(), weights(), {}); }), "calibration: no run was noted");
  Array x = rows(4, 1);
  x.set_double(3, NAN);
  EXPECT_EQ(error_of([&] { calibrated(layer(), weights(), {rows(4, 1), x}); }),
            "calibration: 'dot: f32[B,96] x f32[96,40]' read numbers that are not finite, so it has no range");
  SessionOptions options = without_disk();
  options.precision = Precision::int8;
  EXPECT_EQ(error_of([&] { Calibrator(Session(Device::cpu(), options), layer()); }),
            "calibration: the session computes in another precision (allowed: f32)");
  options.precision = Precision::bf16;
  options.calibration = Calibration{};
  EXPECT_EQ(error_of([&] { Session(Device::cpu(), options); }), "session: a calibration is of int8, but the precision is bf16");
}

}  // namespace calibration_test
}  // namespace rlx::test
