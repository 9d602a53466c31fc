// Packages whose sizes a run decides: each is run at several, and has the numbers of the CPU.
#include "coreml/packages.h"
#include "models/tiny_sentence_model.h"
#include "rlx/ops.h"
#include "rlx/sentence_encoder.h"

namespace rlx::test {
namespace {

Array integers(std::vector<std::int64_t> shape, std::int64_t below) {
  Array array(i32, std::move(shape));
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_int(i, (i * 7 + 3) % below);
  return array;
}

/// Ops by their kinds, over x [B, S, 6] and places [B, S].
Graph many_ops() {
  Graph graph;
  const Dim b = Dim::symbol("B", 8), s = Dim::symbol("S", 16);
  Value x = graph.input("x", {b, s, 6}, f32), places = graph.input("places", {b, s}, i32);
  Value table = graph.param("table", {9, 6}, f32), first = reshape(slice_axis(places, 1, 0, 1), {b});
  graph.output("scalar", exp(x) * 2 + tanh(x));
  graph.output("broadcast", x + slice_axis(x, 1, 0, 1));
  graph.output("softmax", softmax(x, 1));
  graph.output("norm", layer_norm(x));
  graph.output("sum", sum(x, {0, 2}));
  graph.output("reshape", reshape(x, {b * s, 2, 3}));
  graph.output("heads", transpose(reshape(x, {b, s, 2, 3}), {0, 2, 1, 3}));
  graph.output("flat", reshape(transpose(x, {1, 0, 2}), {s * b * 6}));
  graph.output("padded", pad(x, {0, 1, 2}, {1, 2, 0}, {0, 1, 0}, 0.5));
  graph.output("cropped", pad(concat({x, x}, 1), {0, -1, 0}, {0, 0, -2}));
  graph.output("tail", slice_axis(concat({x, x}, 1), 1, s, s * 2));
  graph.output("flip", flip(x, {1}));
  graph.output("products", matmul(x, transpose(x, {0, 2, 1})));
  graph.output("linear", linear(x, table));
  graph.output("rows", take(table, places));
  graph.output("along", take_along_axis(x, broadcast(reshape(first, {b, 1, 1}), {b, s, 1}, {0, 1, 2}), 2));
  graph.output("picked", take(x, reshape(places, {b * s}), 1));
  graph.output("cumsum", cumsum(x, 1));
  graph.output("sorted", sort({x}, 1, 1)[0]);
  graph.output("argmax", argmax(x, 1));
  graph.output("iota", iota(x, {s, b}, i32, 0));
  graph.output("window", window(pad(x, {0, 1, 0}, {0, 1, 0}), 1, 3));
  graph.output("attention", attention(reshape(x, {b, 1, s, 6}), reshape(x, {b, 1, s, 6}), reshape(x, {b, 1, s, 6}), {.causal = true}));
  graph.output(
      "scatter",
      scatter_reduce(x, take_along_axis(broadcast(reshape(places, {b, s, 1}), {b, s, 6}, {0, 1, 2}), iota(x, {b, s, 6}, i32, 2), 2), x, 1,
                     ScatterReduceKind::sum));
  graph.output("slice",
               dynamic_slice(x, {reshape(slice_axis(first, 0, 0, 1), {}), scalar(places, 0, i32), scalar(places, 2, i32)}, {1, s, 3}));
  graph.output("scan",
               scan([](const Values& carry, const Values& row) { return std::pair{Values{carry[0] + row[0]}, Values{carry[0] * row[0]}}; },
                    {slice_axis(reshape(x, {s * b, 6}), 0, 0, 1)}, {reshape(x, {b * s, 1, 6})})[1]);
  return graph;
}

Package many_sizes() {
  Package package{"ops", {many_ops(), {{"table", floats_like_noise({9, 6}, 3)}}}, {}};
  for (const auto& [b, s] : {std::pair{1, 1}, {2, 5}, {8, 16}, {3, 2}})
    package.runs.push_back({{"x", floats_like_noise({b, s, 6})}, {"places", integers({b, s}, s)}});
  return package;
}

Package images(const char* name, CoreMlOptions options) {
  Graph graph;
  Value x = graph.input("x", {Dim::symbol("B", 4), 3, Dim::symbol("H", 32), Dim::symbol("W", 32)}, f32);
  Value y = relu(conv(x, graph.param("w", {4, 3, 3, 3}, f32), {1}, {1}));
  graph.output("y", mean(conv(y, graph.param("v", {2, 4, 1, 1}, f32)), {2, 3}));
  graph.output("edges", y);
  Package package{
      name, {graph, {{"w", floats_like_noise({4, 3, 3, 3}, 5)}, {"v", floats_like_noise({2, 4, 1, 1}, 6)}}}, {}, std::move(options)};
  for (const auto& [h, w] : {std::pair{8, 8}, {12, 20}, {32, 16}}) package.runs.push_back({{"x", floats_like_noise({1, 3, h, w})}});
  return package;
}

TEST(CoreMlSizes, AreThoseOfARun) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  expect_numbers_of_cpu(
      {many_sizes(), images("images", {}), images("choices", {.sizes = {{"B", 1}}, .choices = {{"H", {8, 12, 32}}, {"W", {8, 20, 16}}}})});
}

TEST(CoreMlSizes, OfTextsOfAnyLength) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TinySentenceModel model;
  Package any{"any", SentenceEncoder::saved(model.path()), {}};
  any.bound = 4e-6;
  Package one = any, choices = any;
  one.name = "one", one.options.sizes = {{"B", 1}};
  choices.name = "choices", choices.options.sizes = {{"B", 2}}, choices.options.choices = {{"S", {4, 8, 16}}};
  const auto texts = [](std::int64_t count, std::int64_t length) {
    Array mask(i32, {count, length});
    for (std::int64_t i = 0; i < mask.size(); ++i) mask.set_int(i, i < length || i % length < length / 2);
    return NamedArrays{
        {"input_ids", integers({count, length}, 9)}, {"attention_mask", mask}, {"token_type_ids", Array(i32, {count, length})}};
  };
  for (const std::int64_t length : {3, 8, 16}) {
    any.runs.push_back(texts(1, length));
    any.runs.push_back(texts(4, length));
    one.runs.push_back(texts(1, length));
  }
  for (const std::int64_t length : {4, 8, 16}) choices.runs.push_back(texts(2, length));
  expect_numbers_of_cpu({any, one, choices});
}

TEST(CoreMlSizes, BeyondBoundsAreRefusedByThePackage) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TemporaryFolder folder;
  Graph graph;
  graph.output("y", -graph.input("x", {Dim::symbol("B", 4), 2}, f32));
  write_runs({"range", {graph, {}}, {{{"x", Array(f32, {5, 2})}}}}, folder / "range");
  write_runs({"choices", {graph, {}}, {{{"x", Array(f32, {3, 2})}}}, {.choices = {{"B", {1, 2, 4}}}}}, folder / "choices");
  run_packages(folder.path());
  EXPECT_NE(read_text(folder / "range/error.txt").find("x: (5, 2) is not in [(1, 4), (2, 2)]"), std::string::npos);
  EXPECT_NE(read_text(folder / "choices/error.txt").find("x: (3, 2) is not in [(1, 2), (2, 2), (4, 2)]"), std::string::npos);
}

}  // namespace
}  // namespace rlx::test
