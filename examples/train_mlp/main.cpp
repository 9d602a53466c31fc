// Trains a network of two layers on y = sin(3 x) by stochastic gradient descent. One graph is one whole step: forward, backward and update.
// The weights are states, and an output that is named as a state replaces it: nothing is copied in or out between steps.
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <rlx/rlx.h>

using namespace rlx;

namespace {

constexpr std::int64_t width = 16, batch_size = 64;
constexpr int steps = 5000;
constexpr double learning_rate = 0.1;
const std::vector<std::string> names{"w1", "b1", "w2", "b2"};
const std::vector<Dims> shapes{{1, width}, {width}, {width, 1}, {1}};

/// x (B, 1) -> (B, 1)
Value network(Value x, const Values& weights) {
  const Value hidden = tanh(matmul(x, weights[0]) + weights[1]);
  return matmul(hidden, weights[2]) + weights[3];
}

Graph training_step() {
  Graph g("train_mlp");
  const Dim batch = Dim::symbol("B", batch_size);
  const Value x = g.input("x", {batch, 1}, f32), y = g.input("y", {batch, 1}, f32);
  Values weights;
  for (std::size_t i = 0; i < names.size(); ++i) weights.push_back(g.state(names[i], shapes[i], f32));
  const auto [loss, gradients] = value_and_grad(mse(network(x, weights), y), weights);
  g.output("loss", loss);
  for (std::size_t i = 0; i < names.size(); ++i) g.output(names[i], weights[i] - learning_rate * gradients[i]);
  return g;
}

/// The trained network alone: the same weights, as parameters.
Graph model() {
  Graph g("mlp");
  const Value x = g.input("x", {Dim::symbol("B", batch_size), 1}, f32);
  Values weights;
  for (std::size_t i = 0; i < names.size(); ++i) weights.push_back(g.param(names[i], shapes[i], f32));
  g.output("y", network(x, weights));
  return g;
}

Array uniform(std::vector<std::int64_t> shape, float low, float high, std::mt19937& random) {
  Array array(f32, std::move(shape));
  std::uniform_real_distribution<float> distribution(low, high);
  for (float& value : array.mutable_values<float>()) value = distribution(random);
  return array;
}

}  // namespace

int main() {
  const Session session;
  Executable step = session.compile(training_step());
  std::mt19937 random(1);
  step.set_state("w1", uniform({1, width}, -2, 2, random));  // states begin as zeros
  step.set_state("w2", uniform({width, 1}, -0.2F, 0.2F, random));

  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    const Array x = uniform({batch_size, 1}, -1, 1, random);
    Array y(f32, {batch_size, 1});
    for (std::int64_t row = 0; row < batch_size; ++row) y.set_double(row, std::sin(3 * x.get_double(row)));
    loss = step.run({{"x", x}, {"y", y}}).at("loss").get_double(0);
    if (i % 1000 == 0) std::printf("step %4d: loss %.4f\n", i, loss);
  }
  std::printf("step %4d: loss %.4f\n", steps, loss);

  NamedArrays weights;
  for (const std::string& name : names) weights.emplace(name, step.state(name));
  save_graph("mlp.safetensors", {model(), weights});  // `rlx eval mlp.safetensors --in x=x.npy --out DIR` runs it too

  const SavedGraph saved = load_graph("mlp.safetensors");
  Executable trained = session.compile(saved.graph);
  trained.set_params(saved.weights);
  const std::vector<float> x{0.5F};
  const Outputs out = trained.run({{"x", Array::of<float>({1, 1}, x)}});
  std::printf("network(0.5) = %.2f, sin(1.5) = %.2f\n", out.at("y").get_double(0), std::sin(1.5));
}
