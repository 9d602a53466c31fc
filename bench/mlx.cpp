// Graphs on MLX's CPU beside the same programs written by hand in MLX's C++: time of a run, the host's share of it, and what MLX allocates.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <mlx/mlx.h>
#include <CLI/CLI.hpp>

#include "cases/cases.h"
#include "ir/array_type.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "timed.h"

namespace {

using namespace rlx;
namespace mx = ::mlx::core;

struct Sizes {
  std::int64_t layers, tokens, width, heads, key_heads, inner;
  std::int64_t head() const { return width / heads; }
};

/// A program's parts as our ops. Weights are parameters, named by their number.
struct Ours {
  using Tensor = Value;
  Graph& graph;
  int count = 0;

  Value weight(const std::vector<std::int64_t>& shape) {
    return graph.param(std::to_string(count++), Dims(shape.begin(), shape.end()), f32);
  }
  Value product(Value x, Value w) { return matmul(x, w); }
  Value normed(Value x, Value gamma, Value beta) { return layer_norm(x, gamma, beta); }
  Value normed(Value x, Value gamma) { return rms_norm(x, gamma, {-1}, 1e-5); }
  Value split(Value x, std::int64_t heads) { return transpose(reshape(x, {1, x.dim(1), heads, x.dim(2).value() / heads}), {0, 2, 1, 3}); }
  Value joined(Value x) { return reshape(transpose(x, {0, 2, 1, 3}), {1, x.dim(2), x.dim(1).value() * x.dim(3).value()}); }
  Value turned(Value x) { return rope(x, iota(x, {x.dim(2)}, i32)); }
  Value attended(Value q, Value k, Value v, bool causal) { return attention(q, k, v, {.causal = causal}); }
  Value bent(Value x) { return gelu(x); }
  Value gated(Value gate, Value up) { return swiglu(gate, up); }
};

/// The same by MLX's.
struct ByHand {
  using Tensor = mx::array;
  const std::vector<mx::array>& weights;
  std::size_t count = 0;

  mx::array weight(const std::vector<std::int64_t>& /*shape*/) { return weights[count++]; }
  mx::array product(const mx::array& x, const mx::array& w) { return mx::matmul(x, w); }
  mx::array normed(const mx::array& x, const mx::array& gamma, const mx::array& beta) {
    return mx::fast::layer_norm(x, gamma, beta, 1e-5F);
  }
  mx::array normed(const mx::array& x, const mx::array& gamma) { return mx::fast::rms_norm(x, gamma, 1e-5F); }
  mx::array split(const mx::array& x, std::int64_t heads) {
    const int count_of_heads = static_cast<int>(heads);
    return mx::transpose(mx::reshape(x, {1, x.shape(1), count_of_heads, x.shape(2) / count_of_heads}), {0, 2, 1, 3});
  }
  mx::array joined(const mx::array& x) { return mx::reshape(mx::transpose(x, {0, 2, 1, 3}), {1, x.shape(2), x.shape(1) * x.shape(3)}); }
  mx::array turned(const mx::array& x) { return mx::fast::rope(x, x.shape(3), false, 10000.0F, 1.0F, 0); }
  mx::array attended(const mx::array& q, const mx::array& k, const mx::array& v, bool causal) {
    return mx::fast::scaled_dot_product_attention(q, k, v, 1 / std::sqrt(static_cast<float>(q.shape(3))), causal ? "causal" : "");
  }
  mx::array bent(const mx::array& x) {
    return mx::multiply(x, mx::multiply(mx::add(mx::erf(mx::multiply(x, mx::array(std::sqrt(0.5F)))), mx::array(1.0F)), mx::array(0.5F)));
  }
  mx::array gated(const mx::array& gate, const mx::array& up) { return mx::multiply(mx::multiply(gate, mx::sigmoid(gate)), up); }
};

template <class Ops>
auto encoder(Ops& ops, typename Ops::Tensor x, const Sizes& sizes) {
  const auto linear = [&](const auto& of, std::int64_t in, std::int64_t out) {
    const auto w = ops.weight({in, out});
    return ops.product(of, w) + ops.weight({out});
  };
  const auto normed = [&](const auto& of) {
    const auto gamma = ops.weight({sizes.width});
    return ops.normed(of, gamma, ops.weight({sizes.width}));
  };
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const auto q = ops.split(linear(x, sizes.width, sizes.width), sizes.heads),
               k = ops.split(linear(x, sizes.width, sizes.width), sizes.heads);
    const auto v = ops.split(linear(x, sizes.width, sizes.width), sizes.heads);
    x = normed(x + linear(ops.joined(ops.attended(q, k, v, false)), sizes.width, sizes.width));
    x = normed(x + linear(ops.bent(linear(x, sizes.width, sizes.inner)), sizes.inner, sizes.width));
  }
  return x;
}

template <class Ops>
auto decoder(Ops& ops, typename Ops::Tensor x, const Sizes& sizes) {
  const auto linear = [&](const auto& of, std::int64_t in, std::int64_t out) { return ops.product(of, ops.weight({in, out})); };
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const auto h = ops.normed(x, ops.weight({sizes.width}));
    const auto q = ops.turned(ops.split(linear(h, sizes.width, sizes.width), sizes.heads));
    const auto k = ops.turned(ops.split(linear(h, sizes.width, sizes.key_heads * sizes.head()), sizes.key_heads));
    const auto v = ops.split(linear(h, sizes.width, sizes.key_heads * sizes.head()), sizes.key_heads);
    x = x + linear(ops.joined(ops.attended(q, k, v, true)), sizes.width, sizes.width);
    const auto g = ops.normed(x, ops.weight({sizes.width}));
    const auto gate = linear(g, sizes.width, sizes.inner);
    x = x + linear(ops.gated(gate, linear(g, sizes.width, sizes.inner)), sizes.inner, sizes.width);
  }
  return x;
}

/// 500 nodes: the host's time shows.
template <class Ops>
auto chain(Ops& ops, typename Ops::Tensor x, const Sizes& sizes) {
  const auto scale = ops.weight({sizes.width}), offset = ops.weight({sizes.width});
  for (int i = 0; i < 250; ++i) x = x * scale + offset;
  return x;
}
template <class Ops>
auto products(Ops& ops, typename Ops::Tensor x, const Sizes& sizes) {
  const auto w = ops.weight({sizes.width, sizes.width});
  for (int i = 0; i < 500; ++i) x = ops.product(x, w);
  return x;
}
/// 100 MB of weights.
template <class Ops>
auto large(Ops& ops, typename Ops::Tensor x, const Sizes& sizes) {
  for (std::int64_t i = 0; i < sizes.layers; ++i) x = ops.product(x, ops.weight({sizes.width, sizes.width}));
  return x;
}

/// One program in both forms.
struct Pair {
  Executable ours;
  std::vector<mx::array> weights;
  std::vector<float> x;
  mx::array fed;
  std::function<mx::array(const mx::array& x)> by_hand;

  void run_ours() { ours.run({{"x", x}}); }
  void run_by_hand() { mx::eval(by_hand(fed)); }
};

/// Weights around 0, as small as keeps sums about 1.
std::vector<float> numbers(const Type& type, std::uint32_t seed) {
  const std::vector<std::int64_t> shape = static_shape(type);
  std::vector<float> values(static_cast<std::size_t>(type.size().value()));
  bench::fill(values, seed);
  for (float& value : values) value *= shape.size() > 1 ? 2 / std::sqrt(static_cast<float>(shape[0])) : 1;
  return values;
}

using Arrays = std::vector<mx::array>;

/// `program`: a function of operations, an array, and sizes.
template <class Program>
Pair make(const Sizes& sizes, const std::string& mode, const Program& program) {
  Graph graph("bench");
  Ours ops{graph};
  graph.output("y", program(ops, graph.input("x", {1, sizes.tokens, sizes.width}, f32), sizes));
  SessionOptions options;
  options.cache_folder = "", options.graph_mode = mode;
  Pair pair{Session(Device::named("mlx:cpu"), options).compile(graph), {}, {}, mx::array(0), {}};
  for (const auto& [input, value] : graph.inputs()) {
    const std::vector<float> values = numbers(input.type, static_cast<std::uint32_t>(2 * pair.weights.size() + 3));
    mx::Shape shape;
    for (const std::int64_t size : static_shape(input.type)) shape.push_back(static_cast<int>(size));
    const mx::array array(values.data(), shape, mx::float32);
    if (input.kind == InputKind::input) {
      pair.x = values, pair.fed = array;
    } else {
      pair.ours.set_param(input.name, values);
      pair.weights.push_back(array);
    }
  }
  const auto plain = [program, sizes, weights = pair.weights](const Arrays& x) {
    ByHand by_hand{weights};
    return Arrays{program(by_hand, x[0], sizes)};
  };
  const std::function<Arrays(const Arrays&)> made = mode == "compiled" ? mx::compile(plain) : std::function<Arrays(const Arrays&)>(plain);
  pair.by_hand = [made](const mx::array& x) { return made({x})[0]; };
  return pair;
}

double difference_of(Pair& pair) {
  const Outputs ours = pair.ours.run({{"x", pair.x}});
  const mx::array other = pair.by_hand(pair.fed);
  const std::span<const float> values = ours.at("y").values<float>();
  double most = 0;
  mx::array evaluated = mx::contiguous(other);
  mx::eval(evaluated);
  for (std::size_t i = 0; i < values.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(values[i] - evaluated.data<float>()[i])));
  return most;
}

/// In turn, round after round: the fastest of each.
void compare(const std::string& name, Pair pair, const bench::Options& options) {
  const double difference = difference_of(pair);
  double ours = 1e9, by_hand = 1e9;
  for (int round = 0; round < options.rounds; ++round) {
    ours = std::min(ours, bench::timed([&] { pair.run_ours(); }, options.seconds / options.rounds)[0]);
    by_hand = std::min(by_hand, bench::timed([&] { pair.run_by_hand(); }, options.seconds / options.rounds)[0]);
  }
  fmt::print("{:<40} {:>9.3f} ms, by hand {:>9.3f} ms: {:.3f} of it, {:+.3f} ms; differs by {:.1e}\n", name, ours * 1e3, by_hand * 1e3,
             ours / by_hand, (ours - by_hand) * 1e3, difference);
  std::fflush(stdout);
}

/// What MLX allocates in a run of weights of 100 MB.
void print_copies(Pair pair) {
  pair.run_ours();
  const std::size_t before = mx::get_active_memory();
  mx::reset_peak_memory();
  pair.run_ours();
  fmt::print("{:<40} {} bytes allocated by a run, of its arrays\n", "25 million weights", mx::get_peak_memory() - before);
}

void run(const bench::Options& options) {
  const auto as_encoder = [](auto& ops, auto x, const Sizes& sizes) { return encoder(ops, x, sizes); };
  const auto as_decoder = [](auto& ops, auto x, const Sizes& sizes) { return decoder(ops, x, sizes); };
  const auto as_chain = [](auto& ops, auto x, const Sizes& sizes) { return chain(ops, x, sizes); };
  const auto as_products = [](auto& ops, auto x, const Sizes& sizes) { return products(ops, x, sizes); };
  const auto as_large = [](auto& ops, auto x, const Sizes& sizes) { return large(ops, x, sizes); };
  const Sizes sentence{6, 128, 384, 12, 12, 1536}, language{4, 128, 512, 8, 4, 1376}, small{0, 16, 16, 1, 1, 1}, wide{6, 1, 2048, 1, 1, 1};
  print_copies(make(wide, "lazy", as_large));
  for (const std::string mode : {"lazy", "compiled"}) {
    compare(mode + ", 250 scales and offsets", make(small, mode, as_chain), options);
    compare(mode + ", 500 products", make(small, mode, as_products), options);
  }
  for (const std::string mode : {"lazy", "compiled"}) {
    compare(mode + ", encoder as MiniLM, 128 tokens", make(sentence, mode, as_encoder), options);
    compare(mode + ", decoder of 4 layers, 128 tokens", make(language, mode, as_decoder), options);
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options;
  CLI::App app("graphs on MLX beside the same by hand");
  bench::add_options(app, options, argc, argv);
  return bench::run_command(app, argc, argv, [&] { run(options); });
}
