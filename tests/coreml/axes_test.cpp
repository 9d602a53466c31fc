// More axes than CoreML has, between inputs and outputs that have few.
#include "coreml/packages.h"
#include "message.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

/// Windows of an image, as in Swin: six axes, whose order changes there and back.
Package windows() {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 4), 4, 6, 3}, f32), bias = graph.param("bias", {2, 3}, f32);
  const Dim b = x.dim(0);
  Value y = transpose(reshape(x, {b, 2, 2, 3, 2, 3}), {0, 1, 3, 2, 4, 5});  // (B, 2, 3, 2, 2, 3)
  y = tanh(y + broadcast(bias, y.shape(), {1, 5}));
  graph.output("mean", mean(y, {3, 4}));
  graph.output("y", reshape(transpose(y, {0, 1, 3, 2, 4, 5}), x.shape()));
  Package package{"windows", {graph, {{"bias", floats_like_noise({2, 3}, 3)}}}, {}};
  for (const std::int64_t batch : {1, 3}) package.runs.push_back({{"x", floats_like_noise({batch, 4, 6, 3}, 7)}});
  return package;
}

/// The axes of a graph without symbols, as `of` leaves them.
Package of_seven(const std::string& name, const std::function<Value(const Value&)>& of) {
  Graph graph;
  const Value x = graph.input("x", {144}, f32), y = of(reshape(x, {2, 3, 1, 2, 2, 3, 2}));
  graph.output("y", reshape(y, {y.type().size()}));
  return {name, {graph, {}}, {{{"x", floats_like_noise({144})}}}};
}

TEST(CoreMl, FoldsAxes) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  std::vector<Package> packages{windows()};
  const auto add = [&](const std::string& name, const std::function<Value(const Value&)>& of) { packages.push_back(of_seven(name, of)); };
  add("turned", [](const Value& x) { return transpose(x, {6, 5, 4, 3, 2, 1, 0}); });
  add("mixed", [](const Value& x) { return transpose(x, {3, 6, 0, 5, 1, 4, 2}) * 2; });
  add("sliced", [](const Value& x) { return slice(x, {0, 1, 0, 1, 0, 0, 0}, {2, 3, 1, 2, 2, 3, 1}, {1, 1, 1, 1, 1, 2, 1}); });
  add("padded", [](const Value& x) { return pad(x, {0, 1, 0, 0, 2, 0, -1}, {1, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0}, 0.5); });
  add("reversed", [](const Value& x) { return reverse(x, {0, 3, 5}); });
  add("reduced", [](const Value& x) { return reduce_max(x, {0, 3, 6}); });
  add("summed", [](const Value& x) { return cumsum(x, 1); });
  add("beside",
      [](const Value& x) { return concat({x, exp(x), slice(x, {0, 0, 0, 0, 0, 0, 0}, {2, 3, 1, 2, 2, 1, 2}, {1, 1, 1, 1, 1, 1, 1})}, 5); });
  add("spread", [](const Value& x) { return softmax(x - mean(x, {1, 4}, true), 5); });
  add("places", [](const Value& x) { return window(reshape(x, {2, 3, 2, 2, 6}), 4, 3, 2, 1) + 1; });
  expect_numbers_of_cpu(packages);
}

TEST(CoreMl, RefusesAxesThatItCannotFold) {
  Graph graph;
  const Value x = graph.input("x", {64}, f32);
  graph.output("y", reshape(sort({reshape(x, {2, 2, 2, 2, 2, 2})}, 1, 0)[0], {64}));
  const TemporaryFolder folder;
  EXPECT_NE(error_of([&] { export_coreml(folder / "y.mlpackage", {graph, {}}); }).find("f32[2,2,2,2,2,2]: CoreML has at most 5 axes"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx::test
