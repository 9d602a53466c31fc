// A training step as one graph, whose weights and optimiser are states: GPT-2 124M with AdamW, or a small network of convolutions with
// momentum. bench/training_peers.py makes weights and a batch, and runs it beside others; with --serve it answers as bench/serve.h says.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/fastest_seconds.h"
#include "cases/cases.h"
#include "rlx/ops.h"
#include "rlx/transform.h"
#include "serve.h"

namespace {

using namespace rlx;

/// The weights of a network under construction, by the names of the checkpoint.
struct Weights {
  Graph& graph;
  const NamedArrays& initial;
  std::vector<std::string> names;
  Values values;

  Value operator()(const std::string& name) {
    const auto it = initial.find(name);
    if (it == initial.end()) fail("the file has no weight '{}'", name);
    names.push_back(name);
    values.push_back(graph.state(name, Dims(it->second.shape().begin(), it->second.shape().end()), f32));
    return values.back();
  }
  Value linear(const std::string& name, Value x) {
    const Value weight = (*this)(name + ".weight");
    return rlx::linear(x, weight, (*this)(name + ".bias"));
  }
  Value layer_norm(const std::string& name, Value x) {
    const Value scale = (*this)(name + ".weight");
    return rlx::layer_norm(x, scale, (*this)(name + ".bias"));
  }
};

Value input(Graph& graph, const NamedArrays& given, const std::string& name) {
  const Array& array = given.at(name);
  return graph.input(name, Dims(array.shape().begin(), array.shape().end()), array.dtype());
}

// -- GPT-2 124M

constexpr std::int64_t layers = 12, heads = 12;

Value attend(Weights& weights, const std::string& name, Value x) {
  const Dim batch = x.dim(0), length = x.dim(1), width = x.dim(2);
  const Value qkv = reshape(weights.linear(name + ".c_attn", x), {batch, length, 3, heads, Dim::exact_div(width, heads).value()});
  const Value parts = transpose(qkv, {2, 0, 3, 1, 4});  // (3, B, H, T, D)
  const auto part = [&](std::int64_t i) { return squeeze(slice_axis(parts, 0, i, i + 1), {0}); };
  const Value seen = attention(part(0), part(1), part(2), {.causal = true});
  return weights.linear(name + ".c_proj", reshape(transpose(seen, {0, 2, 1, 3}), x.shape()));
}

Value gpt2_loss(Weights& weights, Value ids, Value targets) {
  const Value table = weights("wte.weight");
  Value x = embedding(table, ids) + slice_axis(weights("wpe.weight"), 0, 0, ids.dim(1));
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("h.{}.", i);
    x = x + attend(weights, layer + "attn", weights.layer_norm(layer + "ln_1", x));
    const Value wide = gelu_tanh(weights.linear(layer + "mlp.c_fc", weights.layer_norm(layer + "ln_2", x)));
    x = x + weights.linear(layer + "mlp.c_proj", wide);
  }
  return cross_entropy(linear(weights.layer_norm("ln_f", x), table), targets);
}

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019), with PyTorch's initial values.
void adamw(Graph& graph, const Weights& weights, const Values& gradients) {
  constexpr double rate = 1e-3, decay = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  const Value step = graph.state("step", {}, f32) + 1;
  graph.output("step", step);
  const auto corrected = [&](double beta) { return 1 - pow(scalar(step, beta, f32), step); };
  const Value correction1 = corrected(beta1), correction2 = corrected(beta2);
  for (std::size_t i = 0; i < weights.names.size(); ++i) {
    const Value w = weights.values[i], g = gradients[i];
    const std::string m_name = "m." + weights.names[i], v_name = "v." + weights.names[i];
    const Value m = graph.state(m_name, w.shape(), f32) * beta1 + g * (1 - beta1);
    const Value v = graph.state(v_name, w.shape(), f32) * beta2 + g * g * (1 - beta2);
    graph.output(m_name, m);
    graph.output(v_name, v);
    graph.output(weights.names[i], w * (1 - rate * decay) - m / correction1 / (sqrt(v / correction2) + epsilon) * rate);
  }
}

// -- two layers of convolutions with pools, and two dense ones

Value convnet_loss(Weights& weights, Value x, Value labels) {
  for (const std::string name : {"conv1", "conv2"}) {
    const Value weight = weights(name + ".weight"), bias = weights(name + ".bias");
    x = max_pool(relu(conv(x, weight, {1}, {1}) + reshape(bias, {bias.dim(0), 1, 1})), {2, 2});
  }
  x = relu(weights.linear("fc1", reshape(x, {x.dim(0), x.dim(1) * x.dim(2) * x.dim(3)})));
  return cross_entropy(weights.linear("fc2", x), labels);
}

void momentum(Graph& graph, const Weights& weights, const Values& gradients) {
  constexpr double rate = 0.01, kept = 0.9;
  for (std::size_t i = 0; i < weights.names.size(); ++i) {
    const std::string name = "m." + weights.names[i];
    const Value m = graph.state(name, weights.values[i].shape(), f32) * kept + gradients[i];
    graph.output(name, m);
    graph.output(weights.names[i], weights.values[i] - m * rate);
  }
}

// -- the step

struct Options {
  std::string model = "gpt2", precision = "f32", cache, file;
  int threads = 2, repeats = 5;
  bool profile = false, serve = false;
};

struct Step {
  Graph graph;
  bench::Inputs inputs;
};

/// Bytes of its own: those of a file keep all of it mapped.
Array copied(const Array& array) {
  Array copy(array.dtype(), array.shape());
  std::ranges::copy(array.bytes(), copy.mutable_bytes().begin());
  return copy;
}

/// `given`: the weights, and the batch as "in" and "targets".
Step training_step(const Options& options, const NamedArrays& given) {
  Step step{Graph(options.model), {{"in", copied(given.at("in"))}, {"targets", copied(given.at("targets"))}}};
  Weights weights{step.graph, given, {}, {}};
  const Value in = input(step.graph, given, "in"), targets = input(step.graph, given, "targets");
  const bool gpt2 = options.model == "gpt2";
  const auto [loss, gradients] =
      value_and_grad(gpt2 ? gpt2_loss(weights, in, targets) : convnet_loss(weights, in, targets), weights.values);
  step.graph.output("loss", loss);
  (gpt2 ? adamw : momentum)(step.graph, weights, gradients);
  return step;
}

void run(const Options& options) {
  NamedArrays given = load_safetensors(options.file).arrays;
  const Step step = training_step(options, given);
  const Session session(Device::cpu(),
                        {.threads = options.threads, .precision = *precision_named(options.precision), .cache_folder = options.cache});
  const auto begin = bench::Clock::now();
  Executable executable = session.compile(step.graph);
  for (const std::string& name : executable.missing_params())
    if (const auto weight = given.find(name); weight != given.end()) executable.set_state(name, weight->second);
  given.clear();
  const bench::Work work = [&] { return executable.run(step.inputs).at("loss"); };
  if (options.serve) {
    fmt::print("{}\n", nlohmann::json{{"version", "this build"}, {"compile_s", bench::seconds_since(begin)}}.dump());
    std::fflush(stdout);
    return bench::serve(work);
  }
  bench::measure(work, 2);
  const std::vector<double> times = bench::measure(work, options.repeats);
  fmt::print("{}, {}: min {:.1f} ms, median {:.1f} ms; arena {:.1f} MB\n", options.model, options.precision,
             *std::ranges::min_element(times) * 1e3, median(times) * 1e3, static_cast<double>(executable.arena_bytes()) / 1e6);
  if (options.profile) bench::print_profile(executable, step.inputs);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times a training step");
  Options options;
  app.add_option("--model", options.model, "gpt2 or convnet")->check(CLI::IsMember({"gpt2", "convnet"}));
  app.add_option("--precision", options.precision, "f32 or bf16")->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--threads", options.threads, "threads");
  app.add_option("--repeats", options.repeats, "timed steps")->check(CLI::PositiveNumber);
  app.add_option("--cache", options.cache, "folder of compiled kernels; none when empty");
  app.add_option("--file", options.file, "safetensors file with weights and batch, as bench/training_peers.py makes it")->required();
  app.add_flag("--profile", options.profile, "print the time of every kind of launch");
  app.add_flag("--serve", options.serve, "be one side of bench/training_peers.py");
  return bench::run_command(app, argc, argv, [&] { run(options); });
}
