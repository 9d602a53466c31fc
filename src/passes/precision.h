#pragma once
#include <string>
#include <vector>

#include "rlx/graph.h"
#include "rlx/precision.h"

namespace rlx {

/// What the pass did with one product of f32.
struct PrecisionChoice {
  std::string product;  // "dot: f32[B,64] x f32[64,32]"
  Precision precision = Precision::f32;
  std::string_view reason;  // why it stays f32 under another policy
};

struct PreciseGraph {
  Graph graph;
  std::vector<PrecisionChoice> choices;  // in the order of the nodes, those of regions included
};

/// Computes the products of f32 in `precision`, where that is worth it.
/// Assumes: a graph of primitives. Guarantees: the same inputs and outputs; only values of f32 change, and only by rounding: in bf16 the
/// operands of a product, so that it is exact but for sums in f32; in int8 those and the weights by half a step of their scale.
PreciseGraph with_precision(const Graph& graph, Precision precision);

}  // namespace rlx
