// Graphs whose values are read at many places: their kernels grow no faster than they do, and compute what the reference computes.
#include <gtest/gtest.h>

#include <array>

#include "backends/cpu/backend.h"
#include "ir/reference.h"
#include "lowering/lowering.h"
#include "ops/values.h"
#include "passes/expand.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace {

struct Family {
  const char* name;
  std::vector<std::int64_t> shape;
  std::function<Value(Value x, int size)> make;
};

Value periodic_heat(Value x, int steps) {
  for (int step = 0; step < steps; ++step) {
    Value around = x * (-2.0 * x.type().rank());
    for (std::int64_t axis = 0; axis < x.type().rank(); ++axis) around = around + roll(x, {1}, {axis}) + roll(x, {-1}, {axis});
    x = x + 0.1 * around;
  }
  return x;
}

Value shifted_sums(Value x, int steps) {
  for (int step = 0; step < steps; ++step) x = x + 0.5 * pad(x, {1, 0}, {-1, 0});
  return x;
}

Value doubled(Value x, int levels) {
  for (int level = 0; level < levels; ++level) x = slice_axis(concat({x, x + 1}, 0), 0, level % 2, 11 + level % 2);
  return x;
}

Value butterflies(Value x, int levels) {
  x = slice_axis(x, 0, 0, 8);
  for (int level = 0; level < levels; ++level) {
    const Value a = slice_axis(x, 0, 0, 4), b = slice_axis(x, 0, 4, 8);
    x = reshape(stack({0.6 * (a + b), 0.6 * (a - b)}, 1), x.shape());
  }
  return x;
}

Value pads(Value x, int count) {
  for (int i = 0; i < count; ++i) x = pad(x, {1, 0}, {0, 1}, {}, static_cast<double>(i));
  return x;
}

Value unrolled_scan(Value x, int steps) {
  Values states;
  Value h = slice_axis(x, 0, 0, 1);
  for (int step = 0; step < steps; ++step) {
    const std::int64_t at = step % 11;
    h = tanh(0.5 * h + slice_axis(x, 0, at, at + 1));
    states.push_back(h);
  }
  return concat(states, 0);
}

/// Sums of neighbours, which are read at several places themselves.
Value window_sums(Value x, int steps) {
  for (int step = 0; step < steps; ++step) x = 0.3 * sum(window(pad(x, {1, 0}, {1, 0}), 0, 3), {1}) + reverse(x, {1});
  return x;
}

/// Running sums of 32 neighbours by steps of 1, 2, 4, ..., which the loops of a softmax read: each at half as many places as are too many.
Value sums_before_softmax(Value x, int steps) {
  for (int step = 0; step < steps; step += 5) {
    for (const std::int64_t by : {1, 2, 4, 8, 16}) x = x + pad(x, {0, by}, {0, -by});
    x = log_softmax(tanh(0.25 * x), 1);
  }
  return x;
}

/// Reshapes and transposes that do not cancel: each index is divided anew.
Value turned(Value x, int steps) {
  for (int step = 0; step < steps; ++step) {
    const std::int64_t rows = std::array{2, 3, 11}[static_cast<std::size_t>(step % 3)];
    x = reshape(transpose(reshape(x, {rows, 66 / rows}), {1, 0}), {11, 6});
  }
  return x;
}

/// Each value is read by others far behind it: where a kernel is cut in two, both need much of what was in it.
Value any_of_all(Value x, int size) {
  Values all{x};
  std::mt19937 random(3);
  const auto any = [&] { return all[random() % all.size()]; };
  for (int i = 0; i < 4 * size; ++i) {
    const Value a = any(), b = any();
    all.push_back(sin(a + 0.3 * b));
  }
  for (const Value& value : all) x = x + value;
  return x;
}

const std::vector<Family>& families() {
  static const std::vector<Family> all{{"periodic heat, 1-d", {11}, periodic_heat},
                                       {"periodic heat, 2-d", {11, 6}, periodic_heat},
                                       {"periodic heat, 3-d", {11, 3, 4}, periodic_heat},
                                       {"shifted sums", {11, 6}, shifted_sums},
                                       {"doubled", {11, 6}, doubled},
                                       {"butterflies", {11, 6}, butterflies},
                                       {"pads", {11, 6}, pads},
                                       {"unrolled scan", {11, 6}, unrolled_scan},
                                       {"window sums", {11, 6}, window_sums},
                                       {"sums before a softmax", {2, 64}, sums_before_softmax},
                                       {"turned", {11, 6}, turned},
                                       {"any of all", {11, 6}, any_of_all}};
  return all;
}

Graph graph_of(const Family& family, int size, bool gradient) {
  Graph graph;
  const Value x = graph.input("x", {family.shape.begin(), family.shape.end()}, f32), y = family.make(x, size);
  graph.output("y", gradient ? grad(sum_all(y * y), {x})[0] : y);
  return graph;
}

std::size_t expressions(const Graph& graph) {
  std::size_t total = 0;
  Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), cpu::target_of());
  for (const GeneratedKernel* kernel : program.kernels()) total += kernel->kernel.exprs.size();
  return total;
}

TEST(BoundedKernels, ExpressionsGrowNoFasterThanTheGraph) {
  for (const Family& family : families())
    for (const bool gradient : {false, true}) {
      SCOPED_TRACE(family.name);
      const auto of = [&](int size) { return static_cast<double>(expressions(graph_of(family, size, gradient))); };
      const double some = of(8), more = of(24), most = of(40);
      EXPECT_LT(most - more, 1.5 * (more - some) + 500) << family.name << (gradient ? ", gradient" : "");
      EXPECT_LT(most, 100.0 * static_cast<double>(graph_of(family, 40, gradient).size())) << family.name;
    }
}

TEST(BoundedKernels, ComputeWhatTheReferenceDoes) {
  for (const Family& family : families())
    for (const bool gradient : {false, true})
      for (const int size : {2, 9}) {
        const Graph graph = graph_of(family, size, gradient);
        std::mt19937 random(3);
        const Array x = random_array({f32, {family.shape.begin(), family.shape.end()}}, -1, 1, random);
        const Array wanted = evaluate(graph, {{"x", x}})[0], seen = Session().compile(graph).run({{"x", x}})[0];
        ASSERT_EQ(seen.shape(), wanted.shape());
        double largest = 1;
        for (std::int64_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::abs(wanted.get_double(i)));
        for (std::int64_t i = 0; i < wanted.size(); ++i)  // a rounding for each of some twenty operations in a row
          ASSERT_NEAR(seen.get_double(i), wanted.get_double(i), 40 * 6e-8 * largest) << family.name << " of " << size << ", element " << i;
      }
}

TEST(BoundedKernels, AConcatOfManyStoredValuesIsCopied) {
  for (const std::int64_t axis : {0, 1, 2})
    for (const DType dtype : {f32, bf16, u8}) {
      Graph graph;
      Values parts;
      std::map<std::string, Array> arrays;
      std::map<std::string, Feed> inputs;
      std::mt19937 random(4);
      for (std::int64_t i = 0; i < 13; ++i) {
        std::vector<std::int64_t> shape{3, 5, 7};
        shape[static_cast<std::size_t>(axis)] = i % 4;  // none of some
        const std::string name = fmt::format("x{}", i);
        parts.push_back(graph.input(name, {shape.begin(), shape.end()}, dtype));
        arrays[name] = random_array({dtype, {shape.begin(), shape.end()}}, 0, 100, random);
        inputs.emplace(name, arrays[name]);
      }
      graph.output("y", concat(parts, axis));
      const Program program = lower(graph, cpu::target_of());
      ASSERT_EQ(program.launches.size(), 1u);
      EXPECT_TRUE(program.launches[0].kernels.empty());
      EXPECT_EQ(values_of(Session().compile(graph).run(inputs)[0]), values_of(evaluate(graph, arrays)[0]));
    }
}

TEST(BoundedKernels, ATreeOfConcatsIsCopied) {
  Graph graph;
  Value x = graph.input("x", {3}, f32);
  for (int level = 0; level < 14; ++level) x = concat({x, x}, 0);
  graph.output("y", x);
  const Array three = floats({3}, {1, 2, 3});
  EXPECT_EQ(values_of(Session().compile(graph).run({{"x", three}})[0]), values_of(evaluate(graph, {{"x", three}})[0]));
  EXPECT_LT(expressions(graph), 10u);
}

}  // namespace
}  // namespace rlx::test
