#pragma once
#include "backends/random_graphs.h"
#include "rlx/transform.h"

// Gradients of random graphs, and random graphs on batches of examples.
namespace rlx::test {

/// A float scalar that every element of a float result changes, each by another weight.
inline Value weighted_sum(const Value& x) {
  const Value flat = reshape(x, {x.type().size()});
  return sum_all(cast(flat, x.dtype() == f64 ? f64 : f32) * cos(cast(iota(flat, flat.shape(), i32, 0), x.dtype() == f64 ? f64 : f32)));
}

inline std::string prefix_of(const std::string& name) { return name.substr(0, name.find('_') + 1); }

/// For each of the graphs drawn into one, the weighted sum of its float outputs and the gradients of that by its float inputs.
inline Graph with_gradients(const Graph& graph) {
  Graph outer;
  Values all;
  for (const auto& [input, value] : graph.inputs()) all.push_back(outer.add_input(input));
  const Values results = inline_graph(graph, all);
  std::map<std::string, Value> losses;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!is_float(results[i].dtype())) continue;
    const Value part = weighted_sum(results[i]);
    const auto [at, is_first] = losses.emplace(prefix_of(graph.outputs()[i].first), part);
    if (!is_first) at->second = at->second + part;
  }
  for (const auto& [prefix, loss] : losses) {
    Values by;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string& name = graph.inputs()[i].first.name;
      if (prefix_of(name) == prefix && is_float(all[i].dtype())) by.push_back(all[i]), names.push_back(name);
    }
    outer.output(prefix + "loss", loss);
    const Values gradients = grad(loss, by);
    for (std::size_t i = 0; i < by.size(); ++i) outer.output(names[i] + "_gradient", gradients[i]);
  }
  return outer;
}

/// The graph on three examples; what they share are its parameters.
inline Graph of_each_example(const Graph& graph) {
  std::map<std::string, std::optional<std::int64_t>> axes;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::input) axes[input.name] = 0;
  return vmap_graph(graph, axes, 0, Dim(3));
}

inline void expect_transforms_equal(const Session& session, Seeds gradients, Seeds batches) {
  gradients = chosen_or(gradients), batches = chosen_or(batches);
  run_seeds(session, gradients.begin, gradients.end, false, {.of = with_gradients, .has_bf16 = false});
  run_seeds(session, batches.begin, batches.end, false, {.of = of_each_example});
}

}  // namespace rlx::test
