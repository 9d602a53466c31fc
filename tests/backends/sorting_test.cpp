// Sorted lines as sessions compute them, bit by bit beside the reference: stable order has one answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backends/dummy_device.h"
#include "ir/reference.h"
#include "ops/values.h"
#include "passes/kernels_only.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace sorting_test {

/// Many ties; of floats also NaN of both signs, infinities and zeros of both signs.
Array keys(DType dtype, const Dims& dims, std::mt19937& random) {
  const bool is_unsigned = is_unsigned_int(dtype) || is_bool(dtype);
  const double most = is_bool(dtype) ? 1 : is_packed(dtype) ? 7 : 50;
  Array x = random_array({dtype, dims}, is_unsigned ? 0 : -most, most, random);
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double special[] = {0.0, -0.0, infinity, -infinity, nan, -nan};
  if (is_float(dtype))
    for (std::int64_t i = 0; i < x.size(); i += 5) x.set_double(i, special[i / 5 % 6]);
  return x;
}

void expect_reference(const Graph& graph, const std::map<std::string, Array>& inputs, const std::string& what) {
  const std::vector<Array> wanted = evaluate(graph, inputs);
  for (const int threads : {1, 2, 3}) {
    const Session session(Device::cpu(), {.threads = threads});
    const auto seen = session.compile(graph).run(std::map<std::string, Feed>(inputs.begin(), inputs.end()));
    for (std::size_t r = 0; r < wanted.size(); ++r)
      ASSERT_TRUE(std::ranges::equal(seen[r].bytes(), wanted[r].bytes())) << what << " result " << r << " threads " << threads;
  }
  static const Session device(dummy_device(), without_disk());
  const Executable steps = device.compile(graph);
  const auto seen = steps.run(feeds(inputs));
  for (std::size_t r = 0; r < wanted.size(); ++r)
    ASSERT_TRUE(std::ranges::equal(seen[r].bytes(), wanted[r].bytes())) << what << " result " << r << " in steps";
  EXPECT_EQ(count_of(steps, "host"), 0U) << what;
}

TEST(Sorting, EveryKeyTypeAndAxis) {
  std::mt19937 random(3);
  for (const DType dtype : {f64, f32, f16, bf16, f8e4m3, f8e5m2, i4, u4, i8, i16, i32, i64, u8, u16, u32, u64, boolean})
    for (const std::int64_t axis : {0, 1, 2})
      for (const bool descending : {false, true}) {
        Graph graph;
        const Dims dims{3, 130, 5};
        const Value x = graph.input("x", dims, dtype);
        const Values sorted = sort({x, iota(x, dims, i32, axis)}, 1, axis, descending);
        graph.output("y", sorted[0]);
        graph.output("from", sorted[1]);
        expect_reference(graph, {{"x", keys(dtype, dims, random)}}, std::string(name(dtype)) + " axis " + std::to_string(axis));
      }
}

TEST(Sorting, LongLinesOfSeveralKeys) {
  std::mt19937 random(4);
  for (const std::int64_t n : {0, 1, 5000, 100001})
    for (const DType second : {f32, i64}) {
      Graph graph;
      const Value a = graph.input("a", {n}, i8), b = graph.input("b", {n}, second);
      const Values sorted = sort({a, b, iota(a, {n}, i32, 0)}, 2, 0, false);
      for (std::size_t i = 0; i < sorted.size(); ++i) graph.output("y" + std::to_string(i), sorted[i]);
      expect_reference(graph, {{"a", keys(i8, {n}, random)}, {"b", keys(second, {n}, random)}}, "length " + std::to_string(n));
    }
}

/// Where nothing goes along, elements come from their ranks; zeros of both signs and NaNs keep their order too.
TEST(Sorting, KeysAlone) {
  std::mt19937 random(7);
  for (const DType dtype : {f64, f32, f16, bf16, f8e4m3, f8e5m2, i4, u4, i8, i16, i32, i64, u8, u16, u32, u64, boolean})
    for (const Dims& dims : {Dims{0}, Dims{1}, Dims{64}, Dims{3, 130}, Dims{5000}, Dims{2, 70001}, Dims{4, 5000, 2}})
      for (const bool descending : {false, true}) {
        Graph graph;
        const auto axis = std::min<std::int64_t>(1, std::ssize(dims) - 1);
        graph.output("y", sort({graph.input("x", dims, dtype)}, 1, axis, descending)[0]);
        expect_reference(graph, {{"x", keys(dtype, dims, random)}}, fmt::format("{} of {}", name(dtype), dims.back().value()));
      }
}

TEST(TopK, EveryTypeAndAxis) {
  std::mt19937 random(5);
  for (const DType dtype : {f64, f32, f16, bf16, f8e4m3, f8e5m2, i4, i8, i16, i32, i64, u8, u16, u32, u64})
    for (const std::int64_t axis : {0, 1, 2})
      for (const std::int64_t k : {0, 1, 3, 30}) {
        const Dims dims = axis == 0 ? Dims{130, 3, 5} : axis == 1 ? Dims{3, 130, 5} : Dims{3, 5, 130};
        Graph graph;
        const Values best = top_k(graph.input("x", dims, dtype), k, axis);
        graph.output("y", best[0]);
        graph.output("from", best[1]);
        expect_reference(graph, {{"x", keys(dtype, dims, random)}}, fmt::format("{} axis {} k {}", name(dtype), axis, k));
      }
}

TEST(TopK, LongLinesIncreasingDecreasingAndEqual) {
  std::mt19937 random(6);
  const std::int64_t n = 50000;
  for (int order = 0; order < 4; ++order) {
    Graph graph;
    const Values best = top_k(graph.input("x", {n}, f32), 50);
    graph.output("y", best[0]);
    graph.output("from", best[1]);
    Array x = keys(f32, {n}, random);
    for (std::int64_t i = 0; order > 0 && i < n; ++i) x.set_double(i, order == 1 ? double(i) : order == 2 ? double(-i) : 1);
    expect_reference(graph, {{"x", x}}, "order " + std::to_string(order));
  }
}

TEST(TopK, OfSubnormalNumbersAreThoseOfEveryNumberOfThreads) {
  for (const DType dtype : {f32, bf16}) {
    Graph graph;
    graph.output("y", top_k(graph.input("x", {1 << 16}, dtype), 3)[1]);
    Array x(dtype, {1 << 16});
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i) * 1e-43);
    expect_reference(graph, {{"x", x}}, std::string(name(dtype)));
  }
}

TEST(TopK, IsOneLaunchThatDoesNotSort) {
  Graph graph;
  graph.output("y", top_k(graph.input("x", {8, 1000}, f32), 10)[0]);
  const Executable program = kernels_only().compile(graph);
  EXPECT_EQ(program.dump(Stage::lir).find("sort"), std::string::npos) << program.dump(Stage::lir);
}

TEST(TopK, MoreThanThereAreIsAnError) {
  Graph graph;
  const Value x = graph.input("x", {4, 9}, f32);
  EXPECT_NE(error_of([&] { top_k(x, 10, 1); }).find("k = 10 along axis 1 of f32[4,9] (allowed: 0..9)"), std::string::npos);
  EXPECT_NE(error_of([&] { top_k(x, -1, 1); }).find("k = -1"), std::string::npos);
}

}  // namespace sorting_test
}  // namespace rlx::test
