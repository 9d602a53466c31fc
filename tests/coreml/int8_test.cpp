// Products in 8-bit integers: packages follow the policy of the CPU, with ranges of a run or of a calibration.
#include "coreml/packages.h"
#include "rlx/calibrator.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

/// Two layers over a convolution, whose image is large enough that its range is worth finding.
Package network() {
  Graph graph;
  Value x = graph.input("x", {2, 16, 12, 12}, f32);
  Value y = relu(conv(x, graph.param("kernel", {48, 16, 3, 3}, f32), {1}, {1}));
  Value rows = reshape(transpose(y, {0, 2, 3, 1}), {2 * 144, 48});
  rows = gelu(linear(rows, graph.param("w", {96, 48}, f32), graph.param("bias", {96}, f32)));
  graph.output("y", linear(rows, graph.param("v", {32, 96}, f32)));
  Package package{"f32", {graph, {}}, {}};
  package.saved.weights = {{"kernel", floats_like_noise({48, 16, 3, 3}, 2)},
                           {"w", floats_like_noise({96, 48}, 3)},
                           {"v", floats_like_noise({32, 96}, 4)},
                           {"bias", floats_like_noise({96}, 5)}};
  for (const std::uint32_t seed : {11U, 12U}) package.runs.push_back({{"x", floats_like_noise({2, 16, 12, 12}, seed)}});
  return package;
}

Calibration calibrated(const Package& package) {
  Calibrator calibrator(Session(Device::cpu(), {.round_activations = false}), package.saved.graph);
  for (const auto& [name, array] : package.saved.weights) calibrator.executable().set_param(name, array);
  for (const NamedArrays& run : package.runs) calibrator.note(calibrator.executable().run({run.begin(), run.end()}));
  return calibrator.calibration();
}

/// Sums of a package are of f32, and what lies on the edge between two of 256 steps may fall to either side: a step of a few elements.
TEST(CoreMlInt8, ProductsAreThoseOfTheCpu) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  Package ranges = network(), known = network();
  ranges.name = "ranges", ranges.options.precision = Precision::int8;
  known.name = "known", known.options.precision = Precision::int8, known.options.calibration = calibrated(known);
  ranges.bound = known.bound = 2e-3;
  expect_numbers_of_cpu({ranges, known});
}

Array integers(std::vector<std::int64_t> shape, int step) {
  Array array(i8, std::move(shape));
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_int(i, i * step % 251 - 125);
  return array;
}

/// Floats that are 8-bit integers are multiplied as these, whatever others are multiplied in.
TEST(CoreMlInt8, ProductsOfIntegersAreExact) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  Graph graph;
  const Value x = cast(graph.input("x", {2, 3, 6, 6}, i8), f32), kernel = cast(graph.param("kernel", {4, 3, 3, 3}, i8), f32);
  graph.output("y", conv(x, kernel, {1}, {1}));
  graph.output("z", matmul(x, cast(graph.param("w", {6, 5}, i8), f32)));
  Package package{"f16", {graph, {{"kernel", integers({4, 3, 3, 3}, 7)}, {"w", integers({6, 5}, 11)}}}, {}};
  package.options.precision = Precision::f16;
  package.runs.push_back({{"x", integers({2, 3, 6, 6}, 13)}});
  package.bound = 0;
  expect_numbers_of_cpu({package});
}

}  // namespace
}  // namespace rlx::test
