// Regions as kernels of Metal, which fake_mlx_kernels launches in the place of MLX's own function.
#include <dlfcn.h>

#include "backends/mlx_device.h"
#include "backends/random_graphs.h"
#include "fake_gpu/fake_mlx_kernels.h"

namespace rlx::test {
namespace {

class MlxFused : public MlxTest {
 protected:
  void SetUp() override {
    MlxTest::SetUp();
    fake_ = static_cast<FakeMlxKernels*>(dlsym(RTLD_DEFAULT, "fake_mlx_kernels"));
    if (!IsSkipped() && !fake_) GTEST_SKIP() << "needs fake_mlx_kernels, which CTest loads";
    if (fake_) *fake_ = {};
  }
  /// How many kernels one more run launches.
  int launches(const Executable& program, const std::map<std::string, Feed>& feeds) {
    const int before = fake_->launches;
    program.run(feeds);
    return fake_->launches - before;
  }

  FakeMlxKernels* fake_ = nullptr;
};

TEST_F(MlxFused, GraphsComputeWhatTheReferenceDoes) {
  const Changed as_it_is{[](const Graph& graph) { return graph; }};
  const auto [begin, end] = chosen_or({0, 10});
  run_seeds(session_of_mode("fused"), begin, end, false, as_it_is);
  EXPECT_GT(fake_->launches, static_cast<int>(end - begin));
  run_seeds(session_of_mode("fused"), 0, 10, false, {for_each_slice});
}

/// Also what a run computes once for all, of sizes that are symbols, and of arrays so small that Metal has them in another space.
TEST_F(MlxFused, ARegionIsAKernelBehindThatOfItsMeans) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 512), 33}, f16), scale = exp(graph.param("scale", {33}, f32));
  const Value wide = cast(x, f32), centred = wide - broadcast_to(mean(wide, {1}, true), x.shape());
  graph.output("y", cast(tanh(centred * scale) + exp(-centred) * 0.5, bf16));
  graph.output("product", matmul(centred, transpose(centred, {1, 0})));
  std::mt19937 random(1);
  const Array weights = random_array({f32, {33}}, -1, 1, random);
  Executable fused = session_of_mode("fused").compile(graph);
  fused.set_param("scale", weights);
  for (const std::int64_t rows : {5, 1, 300}) {
    const std::map<std::string, Array> operands{{"x", random_array({f16, {rows, 33}}, -2, 2, random)}, {"scale", weights}};
    const std::map<std::string, Feed> feeds{{"x", operands.at("x")}};
    EXPECT_EQ(launches(fused, feeds), 2) << rows;
    const std::vector<Array> wanted = evaluate(graph, operands);
    EXPECT_LE(difference(fused.run(feeds)[0], wanted[0]), 8e-3) << rows;  // a unit of bf16 below 2
    EXPECT_LE(difference(fused.run(feeds)[1], wanted[1]), 1e-4) << rows;
  }
}

/// Each way is tried once for arrays of about one size.
TEST_F(MlxFused, MeasuredRegionsAreKernelsWhereTheseAreFaster) {
  Graph graph;
  Value y = graph.input("x", {Dim::symbol("N", 1 << 20)}, f32);
  for (int i = 0; i < 60; ++i) y = y * 1.01 + 0.5;
  graph.output("y", y);
  const Executable program = session_of_mode("measured").compile(graph);
  const std::map<std::string, Feed> large{{"x", Array(f32, {1 << 20})}}, small{{"x", Array(f32, {100})}};
  fake_->computes = false;
  EXPECT_GT(launches(program, large), 1);
  EXPECT_EQ(launches(program, large), 1);
  fake_->computes = true;
  fake_->microseconds = 50000;
  EXPECT_GT(launches(program, small), 0);
  EXPECT_EQ(launches(program, small), 0);
  EXPECT_EQ(launches(program, large), 1);
  EXPECT_LE(difference(program.run(small)[0], session_of_mode("lazy").compile(graph).run(small)[0]), 0);
}

}  // namespace
}  // namespace rlx::test
