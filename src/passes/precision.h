#pragma once
#include <string>
#include <vector>

#include "rlx/graph.h"
#include "rlx/precision.h"

namespace rlx {

/// What the pass did with one product of f32, or with the two of an attention.
struct PrecisionChoice {
  std::string product;  // "dot: f32[B,64] x f32[64,32]"; "attention: " and the types of q and k
  Precision precision = Precision::f32;
  std::string_view reason;  // why it stays f32 under another policy
};

struct PreciseGraph {
  Graph graph;
  std::vector<PrecisionChoice> choices;  // in the order of the nodes, those of regions included
};

/// Computes the products of f32 in `precision`, where that is worth it. What it decides does not depend on who computes them, so it stands
/// before claims.
/// Guarantees: the same inputs and outputs; of composites only those that the policy decides over are left; only values of f32 change, and
/// only by rounding: in bf16 the operands of a product, so that it is exact but for sums in f32, and the result of an attention; in int8
/// those and the weights by half a step of their scale.
PreciseGraph with_precision(const Graph& graph, Precision precision);

}  // namespace rlx
