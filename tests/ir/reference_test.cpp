#include "ir/reference.h"

#include <gtest/gtest.h>

#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace {

TEST(Reference, EvaluatesOutputsInOrder) {
  Graph graph("g");
  Value x = graph.input("x", {2, 2}, f32);
  graph.output("sum", sum(x, {1}));
  graph.output("twice", x * 2);
  const auto results = evaluate(graph, {{"x", floats({2, 2}, {1, 2, 3, 4})}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(values_of(results[0]), (Doubles{3, 7}));
  EXPECT_EQ(values_of(results[1]), (Doubles{2, 4, 6, 8}));
}

TEST(Reference, BindsSymbolsFromShapes) {
  Graph graph("g");
  const Dim n = Dim::symbol("n", 16), m = Dim::symbol("m", 8);
  Value x = graph.input("x", {n, 2}, f32), z = graph.input("z", {m * 2 + n}, f32);
  graph.output("y", concat({reshape(x, {n * 2}), z}, 0));
  graph.output("count", dim_value(x, n * m, i32));
  const auto results = evaluate(graph, {{"x", floats({3, 2}, {1, 2, 3, 4, 5, 6})}, {"z", floats({5}, {7, 8, 9, 10, 11})}});
  EXPECT_EQ(values_of(results[0]), (Doubles{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(values_of(results[1]), (Doubles{3}));  // n = 3, m = 1
}

TEST(Reference, RefusesWrongInputs) {
  Graph graph("g");
  const Dim n = Dim::symbol("n", 4);
  Value x = graph.input("x", {n}, f32), z = graph.input("z", {n}, f32);
  graph.output("y", x + z);
  const Array two = floats({2}, {1, 2}), three = floats({3}, {1, 2, 3}), six = floats({6}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(error_of([&] { evaluate(graph, {{"x", two}}); }), "graph 'g': input 'z' f32[n] is missing");
  EXPECT_EQ(error_of([&] { evaluate(graph, {{"x", two}, {"z", two}, {"w", two}}); }), "graph 'g': has no input 'w'");
  EXPECT_EQ(error_of([&] { evaluate(graph, {{"x", two}, {"z", three}}); }),
            "graph 'g': input 'z': shape [3] does not fit f32[n]: axis 0 is 3 (allowed: 2)");
  EXPECT_EQ(error_of([&] { evaluate(graph, {{"x", two}, {"z", Array(f64, {2})}}); }), "graph 'g': input 'z' is f32[n], given f64[2]");
  EXPECT_EQ(error_of([&] { evaluate(graph, {{"x", six}, {"z", six}}); }),
            "graph 'g': input 'x': shape [6] does not fit f32[n]: n would be 6 (allowed: 1..4)");
}

TEST(Reference, SkipsNodesThatNoOutputNeeds) {
  Graph graph("g");
  Value x = graph.input("x", {1}, f32), unused = graph.input("unused", {1 << 20}, f32);
  // 4 TB if it were evaluated.
  broadcast(unused, {1 << 20, 1 << 20}, {1});
  graph.output("y", x);
  const auto results = evaluate(graph, {{"x", floats({1}, {5})}, {"unused", Array(f32, {1 << 20})}});
  EXPECT_EQ(values_of(results[0]), (Doubles{5}));
}

TEST(Reference, RegionsTakeTheSizesOfTheGraphAround) {
  const Dim n = Dim::symbol("n", 8);
  Graph graph("g");
  const Value x = graph.input("x", {n, 2}, f32), flag = graph.input("flag", {}, boolean);
  graph.output("y", cond(
                        flag, {x}, [&](const Values& v) { return Values{reshape(v[0], {n * 2})}; },
                        [&](const Values& v) { return Values{cast(iota(v[0], {n * 2}, i32), f32)}; })[0]);
  Array yes(boolean, {});
  yes.set_int(0, 1);
  const Array values = floats({2, 2}, {5, 6, 7, 8});
  EXPECT_EQ(values_of(evaluate(graph, {{"x", values}, {"flag", yes}})[0]), (Doubles{5, 6, 7, 8}));
  EXPECT_EQ(values_of(evaluate(graph, {{"x", values}, {"flag", Array(boolean, {})}})[0]), (Doubles{0, 1, 2, 3}));
}

TEST(Reference, StructureOpsCopyBitsOfEveryType) {
  for (const DTypeInfo& row : dtype_table) {
    const DType t = *parse_dtype(row.name);
    Graph graph("g");
    Value x = graph.input("x", {3}, t);
    graph.output("y", reverse(x, {0}));
    Array in(t, {3});
    for (std::int64_t i = 0; i < 3; ++i) in.set_double(i, is_bool(t) ? i == 2 : static_cast<double>(i + 1));
    const Array out = evaluate(graph, {{"x", in}})[0];
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(out.get_complex(i), in.get_complex(2 - i)) << row.name;
  }
}

}  // namespace
}  // namespace rlx::test
