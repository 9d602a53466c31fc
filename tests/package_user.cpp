// What a program needs that is built without CMake: one header, one library.
#include <iostream>
#include <sstream>
#include <vector>

#include <rlx/rlx.h>

int main() {
  rlx::Graph graph("user");
  const rlx::Value x = graph.input("x", {rlx::Dim::symbol("B", 4), 3}, rlx::f32);
  graph.output("low", rlx::lt(x, 100));
  std::cout << x.type() << ' ' << x.dim(0) << ' ' << x.dtype() << '\n';
  const std::vector<float> values{1, 200, 3};
  const rlx::Array low = rlx::Session().compile(graph).run({{"x", rlx::Array::of<float>({1, 3}, values)}}).at("low");
  for (int i = 0; i < 3; ++i) std::cout << low.get_int(i);
  try {
    rlx::matmul(x, rlx::transpose(x, {0, 1}));
  } catch (const rlx::Error& error) {
    std::cout << '\n' << std::string(error.what()).substr(0, 11) << '\n';
  }
}
