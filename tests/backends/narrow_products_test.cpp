// Products of bf16 numbers and of 8-bit integers: through narrow kernels where the level has them, with the same results where not.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/backend.h"
#include "backends/cpu/execution/work.h"
#include "backends/cpu/product/product.h"
#include "ir/reference.h"
#include "lowering/lowering.h"
#include "ops/sample_operands.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {
namespace narrow_products_test {

Array random_array(DType t, std::vector<std::int64_t> shape, unsigned seed) {
  Array array(t, std::move(shape));
  std::mt19937 bits(seed);
  for (std::int64_t i = 0; i < array.size(); ++i)
    is_float(t) ? array.set_double(i, std::uniform_real_distribution<double>(-1, 1)(bits))
                : array.set_int(i, static_cast<std::int8_t>(bits()));
  return array;
}

using Product = Value (*)(Value x, Value w);

struct Case {
  std::string name;
  std::vector<std::int64_t> x, w;
  Product product;
};

/// A linear layer, one with the weights the other way round, and the scores of attention heads.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"x w", {37, 129}, {129, 70}, [](Value x, Value w) { return matmul(x, w); }},
      {"x w^T", {2, 9, 64}, {65, 64}, [](Value x, Value w) { return matmul(x, transpose(w, {1, 0})); }},
      {"heads",
       {2, 17, 3, 32},
       {2, 19, 3, 32},
       [](Value x, Value w) { return matmul(transpose(x, {0, 2, 1, 3}), transpose(w, {0, 2, 3, 1})); }},
  };
  return all;
}

/// The element types of the panels of all products of the program.
std::vector<DType> elements(const Graph& graph) {
  std::vector<DType> found;
  for (const Launch& launch : lower(graph, cpu::target_of()).launches)
    if (const auto* product = cpu::work_of<cpu::Product>(launch)) found.push_back(product->element);
  return found;
}

/// What the program's first claim multiplies, as reports of its launches say.
std::string reported_arithmetic(const Graph& graph) {
  Executable program = Session().compile(graph);
  std::map<std::string, Feed> feeds;
  for (const auto& [input, value] : graph.inputs()) {
    Array values(input.type.dtype, static_shape(input.type));
    if (input.kind == InputKind::param) program.set_param(input.name, values);
    else feeds.emplace(input.name, values);
  }
  for (const LaunchReport& launch : program.profile(feeds, 0))
    if (launch.kind == "claim") return launch.arithmetic;
  return "";
}

Value widened(Value x, DType narrow, DType wide) { return cast(cast(x, narrow), wide); }

std::pair<Value, Value> operands(Graph& graph, const Case& c, DType t) {
  return {graph.input("x", Dims(c.x.begin(), c.x.end()), t), graph.param("w", Dims(c.w.begin(), c.w.end()), t)};
}

Graph of_rounded_floats(const Case& c) {
  Graph graph;
  const auto [x, w] = operands(graph, c, f32);
  graph.output("y", tanh(c.product(widened(x, bf16, f32), widened(w, bf16, f32)) + 1));
  graph.output("next", c.product(widened(tanh(x), bf16, f32), widened(w * 2, bf16, f32)));
  return graph;
}

Graph of_native_bf16(const Case& c) {
  Graph graph;
  const auto [x, w] = operands(graph, c, bf16);
  graph.output("plain", c.product(x, w));
  graph.output("more", c.product(x, w * 2) + 1);
  return graph;
}

Graph of_bytes(const Case& c) {
  Graph graph;
  const auto [x, w] = operands(graph, c, i8);
  const Value y = c.product(cast(x, i32), cast(w, i32));
  graph.output("plain", y);
  graph.output("scaled", cast(y * 3, f32) * 0.5);
  return graph;
}

TEST(NarrowProducts, OfBf16AreComputedFromPanelsOfBf16) {
  if (!cpu::has_micro_kernel<cpu::Bf16>(cpu::cpu_level())) GTEST_SKIP() << "needs a CPU with AVX512-BF16, at its best level";
  for (const Case& c : cases()) {
    EXPECT_EQ(elements(of_rounded_floats(c)), (std::vector{bf16, bf16})) << c.name;
    EXPECT_EQ(elements(of_native_bf16(c)), (std::vector{bf16, bf16})) << c.name;
    EXPECT_EQ(reported_arithmetic(of_rounded_floats(c)), "bf16") << c.name;
    EXPECT_EQ(reported_arithmetic(of_native_bf16(c)), "bf16") << c.name;
  }
}

Graph of_narrow_weights(const Case& c, DType narrow) {
  Graph graph;
  const auto [x, w] = operands(graph, c, f32);
  graph.output("y", tanh(c.product(x, widened(w, narrow, f32)) + 1));
  graph.output("next", c.product(x * 2, widened(w * 2, narrow, f32)));
  return graph;
}

TEST(NarrowProducts, OfNarrowWeightsAreComputedFromTheirPanels) {
  if (!cpu::has_micro_kernel<cpu::F16>(cpu::cpu_level())) GTEST_SKIP() << "needs a CPU with F16C, at a level above portable";
  for (const Case& c : cases())
    for (const DType narrow : {f16, bf16}) {
      EXPECT_EQ(elements(of_narrow_weights(c, narrow)), (std::vector{narrow, narrow})) << c.name;
      EXPECT_EQ(reported_arithmetic(of_narrow_weights(c, narrow)), "f32") << c.name;
    }
}

/// What a session and the reference make of one input and the parameter w.
std::pair<Outputs, std::vector<Array>> both(const Graph& graph, const Array& xs, const Array& ws) {
  Executable program = Session().compile(graph);
  program.set_param("w", ws);
  return {program.run({{"x", xs}}), evaluate(graph, {{"x", xs}, {"w", ws}})};
}

void expect_sums_in_f32(const Case& c, DType narrow) {
  const Graph graph = of_narrow_weights(c, narrow);
  const Array xs = random_array(f32, c.x, 1), ws = random_array(f32, c.w, 2);
  const auto [seen, wanted] = both(graph, xs, ws);
  const auto depth = static_cast<double>(c.x.back());
  for (std::size_t out = 0; out < 2; ++out)
    for (std::int64_t i = 0; i < wanted[out].size(); ++i)  // roundings of f32 by terms of at most 4
      ASSERT_NEAR(seen[out].get_double(i), wanted[out].get_double(i), depth * 4 * depth * 0x1p-24) << c.name << " at " << i;
}

TEST(NarrowProducts, OfNarrowWeightsAreSummedInF32) {
  for (const Case& c : cases())
    for (const DType narrow : {f16, bf16}) expect_sums_in_f32(c, narrow);
}

TEST(NarrowProducts, OfBytesAreComputedFromPanelsOfBytes) {
  if (!cpu::has_micro_kernel<std::int8_t>(cpu::cpu_level())) GTEST_SKIP() << "needs a CPU with AVX2, at its best level";
  for (const Case& c : cases()) {
    EXPECT_EQ(elements(of_bytes(c)), std::vector{i8}) << c.name;
    EXPECT_EQ(reported_arithmetic(of_bytes(c)), "int8") << c.name;
  }
}

TEST(NarrowProducts, OfRoundedFloatsAreSummedInF32) {
  for (const Case& c : cases()) {
    const Graph graph = of_rounded_floats(c);
    const Array xs = random_array(f32, c.x, 1), ws = random_array(f32, c.w, 2);
    const auto [seen, wanted] = both(graph, xs, ws);
    const auto depth = static_cast<double>(c.x.back());
    for (std::size_t out = 0; out < 2; ++out)
      for (std::int64_t i = 0; i < wanted[out].size(); ++i)  // roundings of f32 by terms of at most 2; tanh within 2 ulp may round x up
        ASSERT_NEAR(seen[out].get_double(i), wanted[out].get_double(i), depth * 2 * depth * 0x1p-24 + (out == 1 ? 2 * depth * 0x1p-9 : 0))
            << c.name << " at " << i;
  }
}

TEST(NarrowProducts, OfNativeBf16RoundOnce) {
  for (const Case& c : cases()) {
    const Graph graph = of_native_bf16(c);
    const Array xs = random_array(bf16, c.x, 3), ws = random_array(bf16, c.w, 4);
    const auto [seen, wanted] = both(graph, xs, ws);
    for (std::size_t out = 0; out < 2; ++out)
      for (std::int64_t i = 0; i < wanted[out].size(); ++i) {
        const double number = wanted[out].get_double(i);  // one unit in the last place of bf16, where sums lie beside a boundary
        ASSERT_NEAR(seen[out].get_double(i), number, 0x1p-7 * std::abs(number) + 0x1p-7 * static_cast<double>(out) + 1e-5)
            << c.name << " at " << i;
      }
  }
}

TEST(NarrowProducts, OfBytesAreExact) {
  for (const Case& c : cases()) {
    const Graph graph = of_bytes(c);
    const Array xs = random_array(i8, c.x, 5), ws = random_array(i8, c.w, 6);
    const auto [seen, wanted] = both(graph, xs, ws);
    for (std::size_t out = 0; out < 2; ++out) EXPECT_EQ(seen[out], wanted[out]) << c.name;
  }
}

/// A widened value that is also an output, or read by something else, is stored as both.
TEST(NarrowProducts, LeaveWhatOthersReadOfTheirOperands) {
  Graph graph;
  const Value x = graph.input("x", {16, 64}, f32), w = graph.input("w", {64, 48}, f32);
  const Value rounded = widened(x, bf16, f32), narrow = cast(w, i8);
  graph.output("y", matmul(rounded, widened(w, bf16, f32)));
  graph.output("rounded", rounded);
  graph.output("sum", sum(rounded, {1}));
  graph.output("z", matmul(cast(cast(x * 100, i8), i32), cast(narrow, i32)));
  graph.output("wide", cast(narrow, i32));
  const Array xs = random_array(f32, {16, 64}, 7), ws = random_array(f32, {64, 48}, 8);
  const Outputs seen = Session().compile(graph).run({{"x", xs}, {"w", ws}});
  const std::vector<Array> wanted = evaluate(graph, {{"x", xs}, {"w", ws}});
  for (std::size_t out = 0; out < wanted.size(); ++out)
    for (std::int64_t i = 0; i < wanted[out].size(); ++i)  // 64 roundings of f32 of sums below 64
      ASSERT_NEAR(seen[out].get_double(i), wanted[out].get_double(i), 64 * 64 * 0x1p-24) << out << " at " << i;
}

}  // namespace narrow_products_test
}  // namespace rlx
