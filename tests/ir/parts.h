#pragma once
#include <string>

#include "ir/rebuild.h"

namespace rlx::test {

/// Copies a graph into `program`, where its inputs and outputs have names that begin with `prefix`.
inline void add_part(Graph& program, const Graph& graph, const std::string& prefix) {
  Values inputs;
  for (const auto& [input, value] : graph.inputs()) {
    Input mine = input;
    mine.name = prefix + input.name;
    inputs.push_back(program.add_input(std::move(mine)));
  }
  const Values results = inline_graph(program.data(), graph, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) program.output(prefix + graph.outputs()[i].first, results[i]);
}

}  // namespace rlx::test
