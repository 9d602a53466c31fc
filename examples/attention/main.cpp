// A block of a transformer (layer norm, attention with rotary positions, residual) over texts of any length: compiled once, run at several
// lengths. The counters of the session show that a new length compiles nothing.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <rlx/rlx.h>

using namespace rlx;

namespace {

constexpr std::int64_t longest = 512, width = 64, heads = 4;

Graph attention_block() {
  Graph g("attention_block");
  const Dim length = Dim::symbol("S", longest);
  const Value x = g.input("x", {1, length, width}, f32);
  const auto dense = [&](Value v, const std::string& name) {
    return linear(v, g.param(name + ".weight", {width, width}, f32), g.param(name + ".bias", {width}, f32));
  };
  // (1, S, width) -> (1, heads, S, width / heads)
  const auto split = [&](Value v) { return transpose(reshape(v, {1, length, heads, width / heads}), {0, 2, 1, 3}); };
  const Value normal = layer_norm(x, g.param("norm.weight", {width}, f32), g.param("norm.bias", {width}, f32));
  const Value positions = iota(x, {length}, i32);
  const Value q = rope(split(dense(normal, "q")), positions), k = rope(split(dense(normal, "k")), positions);
  const Value mixed = attention(q, k, split(dense(normal, "v")), {.causal = true});
  g.output("y", x + dense(reshape(transpose(mixed, {0, 2, 1, 3}), {1, length, width}), "out"));
  return g;
}

/// Numbers that look like weights, the same in every run.
Array made_up(std::vector<std::int64_t> shape) {
  Array array(f32, std::move(shape));
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, 0.2 * std::sin(0.7 * static_cast<double>(i)));
  return array;
}

std::int64_t kernels_made(const Session& session) {
  const CompileCounters counters = session.counters();
  return counters.kernels_compiled + counters.kernels_from_disk;
}

}  // namespace

int main() {
  const Session session;
  Executable block = session.compile(attention_block());
  NamedArrays weights;
  for (const std::string& name : block.missing_params())
    weights.emplace(name, name.ends_with(".weight") && name != "norm.weight" ? made_up({width, width}) : made_up({width}));
  block.set_params(weights);

  const std::int64_t compiled = kernels_made(session);
  for (const std::int64_t length : {1, 7, 64, 512}) {
    const Outputs out = block.run({{"x", made_up({1, length, width})}});
    std::printf("S = %3d: y is [1,%d,%d], y[0,0,0] = %.4f, new kernels: %d\n", static_cast<int>(length),
                static_cast<int>(out.at("y").shape()[1]), static_cast<int>(out.at("y").shape()[2]), out.at("y").get_double(0),
                static_cast<int>(kernels_made(session) - compiled));
  }
}
