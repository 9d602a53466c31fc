// A graph with one matrix product: built, compiled and run.
#include <array>

#include <fmt/ranges.h>

#include "rlx/ops.h"
#include "rlx/session.h"

int main() {
  rlx::Graph g("hello");
  rlx::Value x = g.input("x", {1, 4}, rlx::f32);
  rlx::Value w = g.param("w", {4, 2}, rlx::f32);
  g.output("y", rlx::matmul(x, w));

  rlx::Executable exe = rlx::Session(rlx::Device::cpu()).compile(g);
  const std::array<float, 8> weights{1, 2, 3, 4, 5, 6, 7, 8};
  exe.set_param("w", weights);
  const std::array<float, 4> values{1, 0, 2, 0};
  const rlx::Outputs out = exe.run({{"x", values}});
  fmt::print("y = {}\n", out.at("y").values<float>());  // y = [11, 14]
}
