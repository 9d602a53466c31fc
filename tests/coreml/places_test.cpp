// Places that graphs count in i64, and CoreML in i32: where that holds them, whatever a run reads.
#include <limits>

#include "coreml/packages.h"
#include "message.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

Array integers(const std::vector<std::int32_t>& values) { return Array::of<std::int32_t>({std::ssize(values)}, values); }

/// Sizes of groups that are none, too, and the largest ones.
Package groups() {
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min(), most = std::numeric_limits<std::int32_t>::max();
  Graph graph;
  const Value x = graph.input("x", {17, 4}, f32), w = graph.input("w", {3, 4, 5}, f32), sizes = graph.input("sizes", {3}, i32);
  graph.output("y", ragged_dot(x, w, sizes));
  Package package{"groups", {graph, {}}, {}};
  for (const std::vector<std::int32_t>& each : {std::vector{5, 0, 12}, {1, 9, 2}, {-3, 4, most}, {most, most, most}, {least, 2, 1}})
    package.runs.push_back({{"x", floats_like_noise({17, 4})}, {"w", floats_like_noise({3, 4, 5}, 9)}, {"sizes", integers(each)}});
  return package;
}

Package bags() {
  Graph graph;
  const Value table = graph.input("table", {6, 4}, f32), ids = graph.input("ids", {7}, i32), offsets = graph.input("offsets", {3}, i32);
  for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max})
    graph.output(fmt::format("y{}", static_cast<int>(mode)), embedding_bag(table, ids, offsets, mode));
  Package package{"bags", {graph, {}}, {}};
  for (const std::vector<std::int32_t>& each : {std::vector{0, 2, 5}, {1, 1, 7}})
    package.runs.push_back({{"table", floats_like_noise({6, 4})}, {"ids", integers({5, 0, 3, 9, -1, 2, 2})}, {"offsets", integers(each)}});
  return package;
}

Package alignments() {
  Graph graph;
  const Value scores = graph.input("scores", {7, 2, 5}, f32);
  graph.output("loss", ctc_loss(log_softmax(scores), graph.input("labels", {2, 3}, i32), graph.input("times", {2}, i32),
                                graph.input("lengths", {2}, i32)));
  const Array labels = Array::of<std::int32_t>({2, 3}, std::vector<std::int32_t>{1, 1, 4, 2, 3, 0});
  return {"alignments",
          {graph, {}},
          {{{"scores", floats_like_noise({7, 2, 5})}, {"labels", labels}, {"times", integers({7, 5})}, {"lengths", integers({3, 2})}}}};
}

TEST(CoreMlPlaces, AreCountedInI32) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  expect_numbers_of_cpu({groups(), bags(), alignments()});
}

/// Bits of u32 are those of i32, also where sums and products wrap.
TEST(CoreMlPlaces, UnsignedNumbersAreAddedAndMultiplied) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  Graph graph;
  const Value x = graph.input("x", {3, 4}, u32);
  graph.output("sum", sum(x, {1}));
  graph.output("running", cumsum(x, 1));
  graph.output("product", prod(x, {0}));
  graph.output("any", reduce_or(x, {1}));
  graph.output("all", reduce_and(x, {0}));
  graph.output("odd", reduce_xor(x, {0, 1}));
  Array numbers(u32, {3, 4});
  for (std::int64_t i = 0; i < 12; ++i) numbers.set_int(i, static_cast<std::uint32_t>(i * 0x9e3779b9ULL + 0x80000001ULL));
  expect_numbers_of_cpu({{"unsigned", {graph, {}}, {{{"x", numbers}}}}});
}

TEST(CoreMlPlaces, StayWideWhereI32DoesNotHoldThem) {
  const TemporaryFolder folder;
  const auto export_times = [&](double factor) {
    Graph graph;
    const Value x = graph.input("x", {4096}, f32), place = iota(x, {4096}, i64) * factor;
    graph.output("y", select(lt(place, scalar(place, 1e9, i64)), x, -x));
    export_coreml(folder / fmt::format("{}", factor), {graph, {}});
  };
  export_times(1e5);
  EXPECT_NE(error_of([&] { export_times(1e6); }).find("CoreML computes no i64"), std::string::npos);
}

}  // namespace
}  // namespace rlx::test
