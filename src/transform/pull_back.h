#pragma once
#include "transform/forward.h"

namespace rlx {

/// A program's results, and what is linear in its active inputs: a child graph of where the results live, whose inputs are the
/// tangents, then the residuals as captures, and whose outputs are the tangents of those results that vary.
struct Linearized {
  Values results;
  Graph linear{"linear"};
  std::vector<bool> varying;  // by result: it has an output in `linear`
};

/// Runs `program` in `target` on `x` and linearizes it by the inputs marked in `active`.
Linearized linearize(GraphData& target, const Graph& program, const Values& x, const std::vector<bool>& active);

/// Fills a linearization whose linear graph has its inputs already.
void finish_linearized(Linearized& pass, std::span<const Dual> results);

/// The cotangents of the active inputs, in order, from those of the results; null is zero.
Values pull_back(GraphData& target, const Linearized& pass, const Values& cotangents);

/// Inputs of the linear graph for tangents of the given types, and its captures as operands of transpose_linear.
Values tangent_inputs(Graph& linear, const std::vector<Type>& types);
Values residuals_of(const Graph& linear);

}  // namespace rlx
