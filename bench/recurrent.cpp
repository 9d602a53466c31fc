// A step of training a recurrent network, forward and backward by x and all weights, as a session runs it: answers lines "KIND SECONDS
// LAYERS SIZE BATCH STEPS" with the fastest and the median run in seconds, the loss and the sums of the gradients' absolute values.
// bench/recurrent_peers.py asks it and PyTorch in turn. Weights are inputs, as they change from step to step.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"
#include "timed.h"

namespace {

using namespace rlx;

struct Case {
  std::string kind;
  double seconds = 0;
  std::int64_t layers = 1, size = 1, batch = 1, steps = 1;
};

/// Numbers that both sides make alike.
Array waves(const std::vector<std::int64_t>& shape, std::size_t seed, double scale) {
  Array x(f32, shape);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, scale * std::sin(1.7 * static_cast<double>(i) + static_cast<double>(seed)));
  return x;
}

struct Training {
  Graph graph;
  std::map<std::string, Feed> feeds;

  Value input(const std::string& name, const std::vector<std::int64_t>& shape, double scale) {
    feeds.emplace(name, waves(shape, feeds.size(), scale));
    return graph.input(name, Dims(shape.begin(), shape.end()), f32);
  }
};

Values layers_of(const std::string& kind, Value x, const Values& weights) {
  if (kind == "lstm") return lstm(x, weights);
  return kind == "gru" ? gru(x, weights) : rnn(x, weights);
}

Training training_of(const Case& c) {
  Training training;
  const std::int64_t gates = c.size * (c.kind == "lstm" ? 4 : c.kind == "gru" ? 3 : 1);
  Values all{training.input("x", {c.batch, c.steps, c.size}, 1)}, weights;
  const double scale = 1 / std::sqrt(static_cast<double>(c.size));
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    for (int part = 0; part < 2; ++part) weights.push_back(training.input(fmt::format("w{}.{}", layer, part), {gates, c.size}, scale));
    for (int part = 0; part < 2; ++part) weights.push_back(training.input(fmt::format("b{}.{}", layer, part), {gates}, scale));
  }
  const Value dy = training.input("dy", {c.batch, c.steps, c.size}, 1);
  all.insert(all.end(), weights.begin(), weights.end());
  const auto [loss, gradients] = value_and_grad(sum_all(layers_of(c.kind, all[0], weights)[0] * dy), all);
  training.graph.output("loss", loss);
  for (std::size_t i = 0; i < gradients.size(); ++i) training.graph.output(fmt::format("gradient{}", i), gradients[i]);
  return training;
}

double magnitude(const Array& x) {
  double total = 0;
  for (float v : x.values<float>()) total += std::abs(static_cast<double>(v));
  return total;
}

}  // namespace

int main() {
  const Session session = bench::peers_session();
  for (std::string line; std::getline(std::cin, line);) {
    Case c;
    std::istringstream(line) >> c.kind >> c.seconds >> c.layers >> c.size >> c.batch >> c.steps;
    const Training training = training_of(c);
    const Executable executable = session.compile(training.graph);
    const Outputs results = executable.run(training.feeds);
    const std::vector<double> all = bench::timed([&] { executable.run(training.feeds); }, c.seconds);
    std::vector<double> sums{results[0].get_double(0)};
    for (std::size_t i = 1; i < results.size(); ++i) sums.push_back(magnitude(results[i]));
    fmt::print("{} {} {}\n", all.front(), all[all.size() / 2], fmt::join(sums, " "));
    std::fflush(stdout);
  }
}
