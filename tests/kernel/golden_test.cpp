// The kernels of some forty graphs, as text, so that a change that is not meant to change kernels changes none.
// RLX_WRITE_GOLDEN=1 writes tests/fixtures/kernels/ anew: read the difference before it is committed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "backends/cpu/backend.h"
#include "fixture.h"
#include "lowering/lowering.h"
#include "passes/expand.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx {
namespace {

using Make = std::function<Values(Graph&)>;

Value rows(Graph& g, const char* name = "x") { return g.input(name, {Dim::symbol("B", 64), 96}, f32); }
Value image(Graph& g) { return g.input("x", {2, 3, 8, 8}, f32); }
Value vec(Graph& g, const char* name) { return g.input(name, {96}, f32); }

/// The gradient of the sum of y's squares.
Values square_gradient(const Value& y, const Values& by) {
  std::vector<std::int64_t> axes;
  for (int i = 0; i < y.type().rank(); ++i) axes.push_back(i);
  return grad(sum(y * y, axes), by);
}

Values self_attention(Graph& g) {
  const Value x = g.input("x", {1, 2, Dim::symbol("S", 64), 16}, f32);
  return Values{attention(x, x, x)};
}

Values gelu_gradient(Graph& g) {
  const Value x = rows(g);
  return square_gradient(gelu(x), {x});
}

Values layer_norm_gradient(Graph& g) {
  const Value x = rows(g), s = vec(g, "s"), b = vec(g, "b");
  return square_gradient(layer_norm(x, s, b), {x, s, b});
}

Values rms_norm_gradient(Graph& g) {
  const Value x = rows(g);
  return square_gradient(rms_norm(x, vec(g, "s")), {x});
}

Values scalar_mean(Graph& g) {
  const Value x = g.input("x", {96}, f32);
  return Values{x - mean(x, {0})};
}

Values softmax_gradient(Graph& g) {
  const Value x = rows(g);
  return square_gradient(softmax(x), {x});
}

Values split_swiglu(Graph& g) {
  const Values parts = split(rows(g), {48, 48}, 1);
  return Values{silu(parts[0]) * parts[1]};
}

Values two_outputs(Graph& g) {
  const Value x = rows(g);
  return Values{sum(x, {1}), reduce_max(x, {1})};
}

Values leaky_relu(Graph& g) {
  const Value x = rows(g);
  return Values{where(gt(x, scalar(x, 0, f32)), x, 0.1 * x)};
}

const std::map<std::string, Make>& graphs() {
  static const std::map<std::string, Make> all{
      {"add_broadcast", [](Graph& g) { return Values{rows(g) + vec(g, "b")}; }},
      {"argmax", [](Graph& g) { return Values{argmax(rows(g), 1)}; }},
      {"attention", self_attention},
      {"avg_pool", [](Graph& g) { return Values{avg_pool(image(g), {2, 2}, {2, 2})}; }},
      {"bf16_mul", [](Graph& g) { return Values{g.input("x", {64}, bf16) * g.input("y", {64}, bf16)}; }},
      {"cast_i8", [](Graph& g) { return Values{cast(rows(g), i8)}; }},
      {"column_sum", [](Graph& g) { return Values{sum(rows(g), {0})}; }},
      {"column_softmax", [](Graph& g) { return Values{softmax(rows(g), 0)}; }},
      {"concat", [](Graph& g) { return Values{concat({rows(g), rows(g, "y")}, 1)}; }},
      {"conv", [](Graph& g) { return Values{conv(image(g), g.input("w", {4, 3, 3, 3}, f32))}; }},
      {"cross_entropy", [](Graph& g) { return Values{cross_entropy(rows(g), g.input("t", {Dim::symbol("B", 64)}, i32))}; }},
      {"dot_small", [](Graph& g) { return Values{matmul(g.input("x", {3, 4}, f32), g.input("y", {4, 5}, f32))}; }},
      {"embedding",
       [](Graph& g) { return Values{embedding(g.input("table", {100, 16}, f32), g.input("ids", {Dim::symbol("B", 64)}, i32))}; }},
      {"exp", [](Graph& g) { return Values{exp(rows(g))}; }},
      {"f64_tanh", [](Graph& g) { return Values{tanh(g.input("x", {64}, f64))}; }},
      {"flip", [](Graph& g) { return Values{reverse(rows(g), {1})}; }},
      {"full_sum", [](Graph& g) { return Values{sum(rows(g), {0, 1})}; }},
      {"gelu", [](Graph& g) { return Values{gelu(rows(g))}; }},
      {"gelu_gradient", gelu_gradient},
      {"group_norm", [](Graph& g) { return Values{group_norm(image(g), 3)}; }},
      {"integer_division", [](Graph& g) { return Values{g.input("x", {64}, i32) / g.input("y", {64}, i32)}; }},
      {"layer_norm", [](Graph& g) { return Values{layer_norm(rows(g), vec(g, "s"), vec(g, "b"))}; }},
      {"layer_norm_gradient", layer_norm_gradient},
      {"linear_gelu", [](Graph& g) { return Values{gelu(linear(rows(g), g.input("w", {64, 96}, f32), g.input("b", {64}, f32)))}; }},
      {"log_softmax", [](Graph& g) { return Values{log_softmax(rows(g))}; }},
      {"max_pool", [](Graph& g) { return Values{max_pool(image(g), {2, 2}, {2, 2})}; }},
      {"mean_pool", [](Graph& g) { return Values{mean(g.input("x", {2, Dim::symbol("S", 64), 32}, f32), {1})}; }},
      {"one_hot", [](Graph& g) { return Values{one_hot(g.input("ids", {Dim::symbol("B", 64)}, i32), 10)}; }},
      {"pad", [](Graph& g) { return Values{pad(rows(g), {0, 1}, {2, 1})}; }},
      {"residual_rms_norm", [](Graph& g) { return Values{rms_norm(rows(g) + rows(g, "y"), vec(g, "s"))}; }},
      {"resize", [](Graph& g) { return Values{resize(image(g), {16, 16}, ResizeMode::linear)}; }},
      {"rms_norm_gradient", rms_norm_gradient},
      {"rope", [](Graph& g) { return Values{rope(g.input("x", {1, 2, 8, 16}, f32), g.input("p", {1, 8}, i32))}; }},
      {"scalar_mean", scalar_mean},
      {"softmax", [](Graph& g) { return Values{softmax(rows(g))}; }},
      {"softmax_gradient", softmax_gradient},
      {"split_swiglu", split_swiglu},
      {"take", [](Graph& g) { return Values{take(rows(g), g.input("i", {5}, i32), 1)}; }},
      {"transpose", [](Graph& g) { return Values{transpose(rows(g), {1, 0}) + 1}; }},
      {"tril", [](Graph& g) { return Values{tril(g.input("x", {8, 8}, f32))}; }},
      {"two_outputs", two_outputs},
      {"variance", [](Graph& g) { return Values{var(rows(g), {1})}; }},
      {"where", leaky_relu},
  };
  return all;
}

std::string kernels(const Make& make) {
  Graph graph;
  const Values y = make(graph);
  for (std::size_t i = 0; i < y.size(); ++i) graph.output(fmt::format("y{}", i), y[i]);
  const Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), cpu::target_of());
  std::string text;
  for (const Launch& launch : program.launches) {
    if (launch.packed) continue;  // of weights, once
    if (launch.kind != Launch::Kind::kernel) text += launch.claim == "gemm" ? "product\n" : "host\n";
    for (const GeneratedKernel& kernel : launch.kernels) text += "kernel " + to_string(kernel.kernel);
  }
  return text;
}

TEST(Golden, KernelsAreTheRecordedOnes) {
  const char* write = std::getenv("RLX_WRITE_GOLDEN");
  for (const auto& [name, make] : graphs()) {
    const auto path = test::fixture("kernels/" + name + ".txt");
    const std::string text = kernels(make);
    if (write) {
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << text;
    }
    std::ifstream file(path);
    std::stringstream recorded;
    recorded << file.rdbuf();
    EXPECT_EQ(text, recorded.str()) << name;
  }
}

}  // namespace
}  // namespace rlx
