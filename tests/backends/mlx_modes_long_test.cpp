// The modes of MLX; that which compiles calls a compiler for each kernel.
#include <cmath>
#include <cstdlib>

#include "backends/mlx_device.h"
#include "message.h"
#include "ops/sample_operands.h"

namespace rlx::test {
namespace {

class MlxModes : public MlxTest {};

TEST_F(MlxModes, ComputeTheSame) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 8), 16}, f32), w = graph.param("w", {16, 16}, f32);
  const Value blocks = graph.param("blocks", {16, 34}, u8), cache = graph.state("cache", {16}, f32);
  const Value y = gelu(matmul(x, w)),
              counted = fori_loop(3, [](Value, const Values& carry) { return Values{carry[0] * 2 + 1}; }, {cache})[0];
  graph.output("y", softmax(y + block_dot(concat({x, x}, 1), blocks, "Q8_0"), -1));
  graph.output("cache", counted);
  graph.output("l", lu(matmul(transpose(x, {1, 0}), x) + w)[0]);
  std::vector<float> weights(256);
  for (std::size_t i = 0; i < 256; ++i) weights[i] = std::sin(static_cast<float>(i));
  std::map<std::string, std::vector<Array>> seen;
  for (const char* mode : {"lazy", "eager", "compiled"}) {
    Executable program = session_of_mode(mode).compile(graph);
    program.set_param("w", weights);
    program.set_param("blocks", Array(u8, {16, 34}));
    for (const std::int64_t rows : {3, 8, 3})
      for (const auto& [name, value] : program.run({{"x", std::span(weights).first(static_cast<std::size_t>(rows * 16))}}))
        seen[mode].push_back(value);
  }
  for (const char* mode : {"eager", "compiled"}) {
    ASSERT_EQ(seen[mode].size(), seen["lazy"].size());
    for (std::size_t i = 0; i < seen[mode].size(); ++i) EXPECT_LE(difference(seen[mode][i], seen["lazy"][i]), 1e-5) << mode << " " << i;
  }
}

TEST_F(MlxModes, AreNamedByTheSessionOrByTheVariable) {
  Graph graph;
  graph.output("y", exp(graph.input("x", {4}, f32)));
  EXPECT_NE(error_of([&] {
              session_of_mode("later").compile(graph);
            }).find("session: graph_mode: no mode 'later' (allowed: lazy, eager, compiled, fused, measured)"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              SessionOptions options;
              options.graph_mode = "eager";
              const Session session(Device::cpu(), options);
            }).find("session: graph_mode 'eager' is of devices that take whole graphs, as MLX does, and the device is cpu"),
            std::string::npos);
  ::setenv("RLX_MLX_MODE", "later", 1);
  const std::string error = error_of([&] { session().compile(graph); });
  EXPECT_EQ(error_of([&] { session_of_mode("lazy").compile(graph); }), "no error");
  ::unsetenv("RLX_MLX_MODE");
  EXPECT_NE(error.find("RLX_MLX_MODE: no mode 'later' (allowed: lazy, eager, compiled, fused, measured)"), std::string::npos) << error;
}

TEST_F(MlxModes, KernelsOfMetalNeedMetal) {
  Graph graph;
  graph.output("y", exp(graph.input("x", {4}, f32)));
  for (const char* mode : {"fused", "measured"})
    EXPECT_EQ(
        error_of([&] { session_of_mode(mode).compile(graph); }),
        "mlx:cpu: session: modes fused and measured need kernels of Metal: [metal_kernel] No Metal back-end. (allowed here: lazy, eager, "
        "compiled)");
}

/// MLX would write to address 0. Sessions live on.
TEST_F(MlxModes, NameTheOpThatFindsNoMemory) {
  Graph graph;
  const Value x = graph.input("x", {1}, f32), line = iota(x, {1 << 23}, f32);
  graph.output("y", sum(sin(reshape(line, {1 << 23, 1}) * line), {0, 1}) + x);
  const std::vector<float> one{0};
  for (const char* mode : {"lazy", "eager", "compiled"}) {
    const Session device = session_of_mode(mode);
    const std::string error = error_of([&] { device.compile(graph).run({{"x", one}}); });
    EXPECT_TRUE(error.starts_with("mlx:cpu: mul: no memory for 281474976710656 bytes of one result (the machine has ")) << error;
    Graph small;
    small.output("y", exp(small.input("x", {1}, f32)));
    EXPECT_EQ(device.compile(small).run({{"x", one}}).at("y").get_double(0), 1);
  }
}

/// Short scans become part of what is compiled: one function in all, whose results are those of the loop.
TEST_F(MlxModes, CompiledScansAreUnrolledUpToABound) {
  Graph graph;
  const Value x = graph.input("x", {5, 3}, f32), start = graph.input("start", {3}, f32);
  const Values y =
      scan([](const Values& carry, const Values& over) { return std::pair(Values{carry[0] * 0.5 + over[0]}, Values{carry[0] * 2}); },
           {start}, {x});
  graph.output("last", y[0]);
  graph.output("all", y[1]);
  std::vector<float> values(15), zeros(3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const std::vector<Array> wanted = evaluate(graph, {{"x", Array::of<float>({5, 3}, values)}, {"start", Array(f32, {3})}});
  for (const std::int64_t bound : {0, 4, 5}) {
    SessionOptions options;
    options.graph_mode = "compiled", options.unrolled_steps = bound;
    const Outputs seen = session(options).compile(graph).run({{"x", values}, {"start", zeros}});
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_LE(difference(seen[i], wanted[i]), 1e-6) << bound;
  }
}

}  // namespace
}  // namespace rlx::test
