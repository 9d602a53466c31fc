// The modes of MLX; that which compiles calls a compiler for each kernel.
#include <cmath>
#include <cstdlib>

#include "backends/mlx_device.h"
#include "message.h"
#include "ops/sample_operands.h"

namespace rlx::test {
namespace {

class MlxModes : public MlxTest {};

/// The variable while this lives.
struct ModeOf {
  explicit ModeOf(const char* mode) { ::setenv("RLX_MLX_MODE", mode, 1); }
  ~ModeOf() { ::unsetenv("RLX_MLX_MODE"); }
};

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
    const ModeOf variable(mode);
    Executable program = session().compile(graph);
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
  const ModeOf variable("later");
  const std::string error = error_of([&] { session().compile(graph); });
  EXPECT_NE(error.find("RLX_MLX_MODE: no mode 'later' (allowed: lazy, eager, compiled)"), std::string::npos) << error;
}

}  // namespace
}  // namespace rlx::test
