#pragma once
#include <string>
#include <vector>

#include "passes/expand.h"
#include "rlx/calibration.h"
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
/// before claims. With a calibration int8 products have the scales and offsets that follow from it, but for those of regions.
/// Guarantees: the same inputs and outputs; of composites only those that the policy decides over, and that `is_claimed`, are left; only
/// values of f32 change, and only by rounding: in bf16 the operands of a product, so that it is exact but for sums in f32, and the result
/// of an attention; in f16 the weights; in int8 weights and what they are multiplied with by half a step of their scale, an attention as in
/// bf16, and with a calibration elements far beyond its ranges to the end of 8 bits. Throws Error for a calibration that was made for other
/// products.
PreciseGraph with_precision(const Graph& graph, Precision precision, const Calibration* calibration = nullptr,
                            const IsClaimed& is_claimed = nothing_claimed);

struct NotedGraph {
  Graph graph;
  std::vector<std::string> products;  // those that int8 computes, regions left out, as in PrecisionChoice
};

/// The graph with two more outputs for each product that int8 computes: the least and the largest element at each place of its left
/// operand.
NotedGraph with_ranges_noted(const Graph& graph);
/// The name of such an output; `end`: "least" or "largest".
std::string noted_name(std::size_t product, std::string_view end);

}  // namespace rlx
