// Kernels that are cut into parts where their guards turn: what they compute, and that no choice is left where most elements are.
#include <gtest/gtest.h>

#include "backends/cpu/backend.h"
#include "ir/reference.h"
#include "lowering/lowering.h"
#include "ops/values.h"
#include "passes/expand.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace parts_test {

struct Case {
  const char* name;
  std::vector<std::int64_t> shape;
  std::function<Values(Value)> make;
  bool parts = true;
};

Values one(Value y) { return {y}; }

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"a pad", {200, 300}, [](Value x) { return one(pad(x, {3, 1}, {2, 7}, {}, 1.5) * 2); }},
      {"a crop of a pad", {200, 300}, [](Value x) { return one(pad(x, {-3, 1}, {2, -7})); }},
      {"a pad between elements", {200, 300}, [](Value x) { return one(pad(x, {1, 0}, {1, 0}, {0, 1})); }},
      {"a pad read backwards", {200, 300}, [](Value x) { return one(x + reverse(pad(x, {0, 5}, {0, -5}), {1})); }},
      {"every second element of a pad", {250, 300}, [](Value x) { return one(slice(pad(x, {0, 3}, {0, 4}), {0, 0}, {250, 307}, {1, 2})); }},
      {"a concat", {100, 5, 100}, [](Value x) { return one(concat({x, x * 2, exp(x)}, 1)); }},
      {"a concat of rows", {300, 100}, [](Value x) { return one(concat({x, sum(x, {0}, true), x}, 0)); }},
      {"a roll in three directions", {40, 40, 40}, [](Value x) { return one(roll(x, {1, -2, 30}, {0, 1, 2})); }},
      {"a vector", {100000}, [](Value x) { return one(roll(x, {7}, {0}) + x); }},
      {"a last part that is all", {33000, 3}, [](Value x) { return one(roll(x, {1}, {1}) + roll(x, {-1}, {1})); }},
      {"two results",
       {200, 300},
       [](Value x) {
         const Value moved = roll(x, {1}, {0});
         return Values{x + moved, x * moved};
       }},
      {"bf16", {200, 300}, [](Value x) { return one(cast(roll(cast(x, bf16), {1}, {1}), f32)); }},
      {"many parts",
       {40, 1000},
       [](Value x) {
         Values parts;
         for (std::int64_t i = 0; i < 20; ++i) parts.push_back(slice_axis(x, 1, 50 * (19 - i), 50 * (19 - i) + 50));
         return one(concat(parts, 1));
       },
       false},
      {"few elements", {20, 30}, [](Value x) { return one(roll(x, {1}, {0})); }, false},
      {"a reduction", {200, 300}, [](Value x) { return one(pad(sum(pad(x, {1, 1}, {1, 1}), {1}), {1}, {1})); }, false},
  };
  return all;
}

Graph graph_of(const Case& c, bool any_rows) {
  Graph graph;
  Dims shape(c.shape.begin(), c.shape.end());
  if (any_rows) shape[0] = Dim::symbol("B", 100000);
  const Values y = c.make(graph.input("x", shape, f32));
  for (std::size_t i = 0; i < y.size(); ++i) graph.output(fmt::format("y{}", i), y[i]);
  return graph;
}

bool chooses(const Kernel& kernel) {
  return std::ranges::any_of(kernel.exprs, [](const Expr& e) { return e.kind == Expr::Kind::choose; });
}

TEST(Parts, ComputeWhatTheReferenceDoes) {
  std::mt19937 random(5);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Graph graph = graph_of(c, false);
    const Array x = random_array({f32, {c.shape.begin(), c.shape.end()}}, -1, 1, random);
    const std::vector<Array> wanted = evaluate(graph, {{"x", x}});
    const auto seen = Session().compile(graph).run({{"x", x}});
    for (std::size_t r = 0; r < wanted.size(); ++r) {
      ASSERT_EQ(seen[r].shape(), wanted[r].shape());
      for (std::int64_t i = 0; i < wanted[r].size(); ++i)  // exp and a sum of 300 numbers are rounded otherwise
        ASSERT_NEAR(seen[r].get_double(i), wanted[r].get_double(i), 2e-5) << "element " << i;
    }
  }
}

TEST(Parts, TheLargestHasNoChoice) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    bool has_parts = false;
    Program program = lower(expand(graph_of(c, false), [](const Graph&, const Node&) { return false; }), cpu::target_of());
    for (Launch& launch : program.launches) {
      has_parts = has_parts || launch.kernels.size() > 1;
      if (launch.kernels.size() > 1 && std::string(c.name) != "a pad between elements") {
        EXPECT_FALSE(chooses(launch.kernels[0].kernel));
      }
    }
    EXPECT_EQ(has_parts, c.parts);
  }
}

TEST(Parts, ALengthThatIsASymbolIsLeftWhole) {
  const Case& c = cases()[0];
  const Graph graph = graph_of(c, true);
  std::mt19937 random(6);
  const Array x = random_array({f32, {200, 300}}, -1, 1, random);
  EXPECT_EQ(values_of(Session().compile(graph).run({{"x", x}})[0]), values_of(evaluate(graph, {{"x", x}})[0]));
}

}  // namespace parts_test
}  // namespace rlx::test
