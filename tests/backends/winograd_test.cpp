// Convolutions of 3 x 3 by Winograd's products, in networks as sessions compile them.
#include "backends/cpu/gemm/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/reference.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {
namespace winograd_test {

using Ints = std::vector<std::int64_t>;

Array random_array(Ints shape, unsigned seed) {
  Array array(f32, std::move(shape));
  std::mt19937 bits(seed);
  for (float& value : array.mutable_values<float>()) value = std::uniform_real_distribution<float>(-1, 1)(bits);
  return array;
}

struct Case {
  std::int64_t images, channels, height, width, columns;
};

/// Even and odd lines and positions, tiles in fewer and more than one block, last vectors and panels that are not full.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{{1, 64, 28, 28, 64}, {2, 32, 7, 7, 40},  {3, 37, 5, 12, 70},
                                     {1, 130, 14, 9, 33}, {1, 48, 61, 4, 32}, {2, 600, 6, 6, 64}};
  return all;
}

/// Between convolutions of one position, which leave and read the channels side by side, with what follows it in a network.
Graph block(const Case& c, std::int64_t images) {
  Graph graph;
  const Value x = graph.input("x", {images, 8, c.height, c.width}, f32);
  const Value y = relu(conv(x, graph.param("v", {c.channels, 8, 1, 1}, f32)));
  const Value bias = reshape(graph.param("bias", {c.columns}, f32), {1, c.columns, 1, 1});
  const Value z = relu(conv(y, graph.param("w", {c.columns, c.channels, 3, 3}, f32), {1}, {1}) + bias);
  graph.output("y", conv(z, graph.param("u", {8, c.columns, 1, 1}, f32)));
  return graph;
}

std::map<std::string, Array> inputs_of(const Graph& graph) {
  std::map<std::string, Array> inputs;
  for (const auto& [input, value] : graph.inputs()) {
    Ints shape;
    for (const Dim& size : input.type.shape) shape.push_back(size.value());
    inputs[input.name] = random_array(shape, static_cast<unsigned>(inputs.size()) + 1);
  }
  return inputs;
}

Array run(const Graph& graph, const std::map<std::string, Array>& inputs, int threads) {
  Executable program = Session(Device::cpu(), {.threads = threads, .cache_folder = {}}).compile(graph);
  for (const auto& [name, value] : inputs)
    if (name != "x") program.set_param(name, value);
  return program.run({{"x", inputs.at("x")}})[0];
}

TEST(Winograd, MatchesTheReference) {
  for (const Case& c : cases()) {
    ASSERT_TRUE(cpu::worth_winograd(c.height, c.width, c.channels, c.columns));
    const Graph graph = block(c, c.images);
    const auto inputs = inputs_of(graph);
    const Array wanted = evaluate(graph, inputs)[0], seen = run(graph, inputs, 2);
    double largest = 0, error = 0;
    for (std::int64_t i = 0; i < wanted.size(); ++i) {
      largest = std::max(largest, std::abs(wanted.get_double(i)));
      error = std::max(error, std::abs(seen.get_double(i) - wanted.get_double(i)));
    }
    EXPECT_LT(error, 1e-5 * largest) << c.channels << " channels";  // what is asked of f32
  }
}

TEST(Winograd, GivesAnImageTheSameBitsOnAnyThreadsAndAmongOthers) {
  for (const Case& c : cases()) {
    const Graph many = block(c, c.images), one = block(c, 1);
    auto inputs = inputs_of(many);
    const Array together = run(many, inputs, 1);
    EXPECT_EQ(run(many, inputs, 3), together);
    const auto of_image = [&](const Array& all, Ints shape, std::int64_t image) {
      Array part(f32, std::move(shape));
      std::copy_n(all.values<float>().begin() + image * part.size(), part.size(), part.mutable_values<float>().begin());
      return part;
    };
    const std::int64_t last = c.images - 1;
    inputs["x"] = of_image(inputs.at("x"), {1, 8, c.height, c.width}, last);
    EXPECT_EQ(run(one, inputs, 2), of_image(together, {1, 8, c.height, c.width}, last));
  }
}

TEST(Winograd, IsExactForSmallWholeNumbers) {
  const Graph graph = block({1, 32, 9, 10, 64}, 1);
  auto inputs = inputs_of(graph);
  // Kernels of multiples of 4, as their transforms divide by 4: then nothing is rounded, and another order of sums changes nothing.
  for (auto& [name, values] : inputs)
    for (float& value : values.mutable_values<float>()) value = std::round(value * 3) * (name == "w" ? 4.0F : 1.0F);
  EXPECT_EQ(run(graph, inputs, 2), evaluate(graph, inputs)[0]);
}

}  // namespace winograd_test
}  // namespace rlx
