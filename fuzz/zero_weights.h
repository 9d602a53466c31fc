#pragma once
#include <cstdint>
#include <vector>

#include "models/families/export/same_model.h"
#include "rlx/io.h"

namespace rlx::fuzz {

/// Zeros for every parameter of a model, by its name.
inline NamedArrays zero_weights(const DecoderConfig& config) {
  const Graph graph = param_graph(config, false);
  NamedArrays weights;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind != InputKind::param) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& size : input.type.shape) shape.push_back(size.value());
    weights.emplace(input.name, Array(input.type.dtype, shape));
  }
  return weights;
}

}  // namespace rlx::fuzz
