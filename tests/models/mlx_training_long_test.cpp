// Gradients of models on MLX's CPU: those of the CPU.
#include <algorithm>
#include <filesystem>

#include "backends/mlx_device.h"
#include "fixture.h"
#include "ir/rebuild.h"
#include "models/run/recorded_run.h"
#include "ops/sample_operands.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace {

class MlxTraining : public MlxTest {};

/// The derivatives of the mean square of a model's first output by all of its weights.
Graph training_graph(const Graph& model) {
  Graph graph("training");
  Values inputs, weights;
  for (const auto& [input, value] : model.inputs()) {
    inputs.push_back(graph.add_input(input));
    if (input.kind == InputKind::param && is_float(input.type.dtype)) weights.push_back(inputs.back());
  }
  const Value seen = inline_graph(graph.data(), model, inputs)[0];
  const Values gradients = grad(mean(reshape(square(cast(seen, f32)), {seen.type().size()}), {0}), weights);
  for (std::size_t i = 0; i < gradients.size(); ++i) graph.output("d" + std::to_string(i), gradients[i]);
  return graph;
}

Outputs run_on(const Session& session, const Graph& graph, const RecordedRun& recorded) {
  Executable program = session.compile(graph);
  std::map<std::string, Feed> fed;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind == InputKind::param) program.set_param(input.name, recorded.weights().at(input.name));
    else if (input.kind == InputKind::input) fed.emplace(input.name, recorded.inputs().at(input.name));
  }
  return program.run(fed);
}

TEST_F(MlxTraining, GradientsOfModelsAreThoseOfTheCpu) {
  SessionOptions options;
  options.cache_folder = std::filesystem::path();
  const Session cpu(Device::cpu(), options), device = session();
  for (const auto& entry : std::filesystem::directory_iterator(fixture("hf"))) {
    if (!entry.is_directory()) continue;
    SCOPED_TRACE(entry.path().filename());
    const RecordedRun recorded = RecordedRun::open(entry.path());
    const Graph graph = training_graph(recorded.graph());
    const Outputs wanted = run_on(cpu, graph, recorded), seen = run_on(device, graph, recorded);
    ASSERT_GT(wanted.size(), 5U);
    double most = 0;  // beside which derivatives by what cancels, as biases of keys, are rounding alone
    for (const auto& [name, gradient] : wanted) most = std::max(most, largest_magnitude(gradient));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double rounding = 1e-4 + 2 * epsilon(wanted[i].dtype());
      EXPECT_LE(difference(seen[i], wanted[i]), rounding * largest_magnitude(wanted[i]) + 1e-6 * most) << graph.outputs()[i].first;
    }
  }
}

}  // namespace
}  // namespace rlx::test
