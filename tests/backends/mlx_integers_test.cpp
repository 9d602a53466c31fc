// Products of integers by MLX, which multiplies floats, and of f64, which it rounds before it adds: all bits are those of the reference.
#include <cmath>
#include <random>

#include "backends/mlx_device.h"
#include "ops/sample_operands.h"

namespace rlx::test {
namespace {

class MlxIntegers : public MlxTest {
 protected:
  /// Any bits.
  Array drawn(DType dtype, std::vector<std::int64_t> shape) {
    Array array(dtype, std::move(shape));
    for (std::byte& byte : array.mutable_bytes()) byte = static_cast<std::byte>(random_());
    return array;
  }
  void expect_same(const Graph& graph, const std::map<std::string, Array>& operands) {
    const std::vector<Array> wanted = evaluate(graph, operands);
    const Outputs seen = session({.host = false}).compile(graph).run({operands.begin(), operands.end()});
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(difference(seen[i], wanted[i]), 0) << graph.outputs()[i].first;
  }

  std::mt19937 random_{7};
};

constexpr DType all_integers[] = {i8, i16, i32, i64, u8, u16, u32, u64};

TEST_F(MlxIntegers, ProductsWrapAsEverywhere) {
  for (const DType dtype : all_integers) {
    SCOPED_TRACE(name(dtype));
    const std::map<std::string, Array> operands{{"x", drawn(dtype, {3, 2, 70})}, {"w", drawn(dtype, {3, 70, 5})}};
    Graph graph;
    graph.output("y", matmul(graph.input("x", {3, 2, 70}, dtype), graph.input("w", {3, 70, 5}, dtype)));
    expect_same(graph, operands);
  }
}

TEST_F(MlxIntegers, ConvolutionsWrapAsEverywhere) {
  for (const DType dtype : all_integers)
    for (const std::int64_t channels : {2, 600}) {  // sums of 12 terms, and of 3600
      SCOPED_TRACE(fmt::format("{} of {} channels", name(dtype), channels));
      const std::map<std::string, Array> operands{{"x", drawn(dtype, {1, channels, 4, 5})}, {"w", drawn(dtype, {4, channels, 3, 2})}};
      Graph graph;
      graph.output("y", conv_general(graph.input("x", {1, channels, 4, 5}, dtype), graph.input("w", {4, channels, 3, 2}, dtype), {}));
      expect_same(graph, operands);
    }
}

TEST_F(MlxIntegers, ConvolutionsOverThreeAxesHaveGroups) {
  std::mt19937 random(3);
  const std::map<std::string, Array> operands{{"x", random_array({f32, {2, 6, 4, 5, 3}}, -1, 1, random)},
                                              {"w", random_array({f32, {4, 3, 2, 3, 2}}, -1, 1, random)}};
  Graph graph;
  ConvOptions options;
  options.feature_group_count = 2;
  graph.output("y", conv_general(graph.input("x", {2, 6, 4, 5, 3}, f32), graph.input("w", {4, 3, 2, 3, 2}, f32), options));
  const Array seen = session({.host = false}).compile(graph).run({operands.begin(), operands.end()})[0];
  EXPECT_LE(difference(seen, evaluate(graph, operands)[0]), 1e-5);
}

TEST_F(MlxIntegers, QuantizedLayersAreMlxs) {
  Graph graph;
  const Value x = graph.input("x", {3, 70}, i8), w = graph.input("w", {70, 4}, i8);
  graph.output("y", q_matmul(x, w, graph.input("b", {4}, i32), graph.input("m", {4}, i32), graph.input("s", {4}, i32)));
  Array bias(i32, {4}), multiplier(i32, {4}), shift(i32, {4});
  for (std::int64_t i = 0; i < 4; ++i)
    bias.set_int(i, 500 * i - 700), multiplier.set_int(i, (1 << 30) + 12345 * i), shift.set_int(i, -8 - i);
  expect_same(graph, {{"x", drawn(i8, {3, 70})}, {"w", drawn(i8, {70, 4})}, {"b", bias}, {"m", multiplier}, {"s", shift}});
}

/// Where the sum is near the product's negative, or half way between two numbers, a second rounding would show.
TEST_F(MlxIntegers, FmaOfF64RoundsOnce) {
  constexpr std::int64_t count = 20000;
  std::uniform_real_distribution<double> near_one(1, 2);
  std::uniform_int_distribution<int> exponent(-60, 60);
  Array x(f64, {count}), y(f64, {count}), z(f64, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    const double a = near_one(random_), b = near_one(random_);
    x.set_double(i, a), y.set_double(i, i % 2 == 0 ? b : 1 + std::ldexp(1.0, -30));
    z.set_double(i, i % 3 == 0 ? -a * b : std::ldexp(i % 5 < 2 ? 1.0 : -near_one(random_), exponent(random_)));
  }
  const double ends[] = {0, -0.0, INFINITY, NAN, 1e308, -1e308, 3};
  for (std::int64_t i = 0; i < 343; ++i) x.set_double(i, ends[i % 7]), y.set_double(i, ends[i / 7 % 7]), z.set_double(i, ends[i / 49]);
  Graph graph;
  graph.output("r", fma(graph.input("x", {count}, f64), graph.input("y", {count}, f64), graph.input("z", {count}, f64)));
  const Array seen = session({.host = false}).compile(graph).run({{"x", x}, {"y", y}, {"z", z}})[0];
  for (std::int64_t i = 0; i < count; ++i) {
    const double wanted = std::fma(x.get_double(i), y.get_double(i), z.get_double(i)), r = seen.get_double(i);
    EXPECT_TRUE(r == wanted || (std::isnan(r) && std::isnan(wanted))) << i << ": " << r << ", must be " << wanted;
  }
}

}  // namespace
}  // namespace rlx::test
