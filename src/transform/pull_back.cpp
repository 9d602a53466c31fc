#include "transform/pull_back.h"

#include "ir/region.h"
#include "ir/sources.h"
#include "transform/control_rules.h"
#include "transform/transpose.h"

namespace rlx {

Values tangent_inputs(Graph& linear, const std::vector<Type>& types) {
  Values inputs;
  for (std::size_t i = 0; i < types.size(); ++i)
    inputs.push_back(make_input(linear.data(), {"tangent" + std::to_string(i), InputKind::input, types[i]}));
  return inputs;
}

Values residuals_of(const Graph& linear) {
  Values operands(linear.inputs().size() - linear.captures().size());
  operands.insert(operands.end(), linear.captures().begin(), linear.captures().end());
  return operands;
}

Linearized linearize(GraphData& target, const Graph& program, const Values& x, const std::vector<bool>& active) {
  Linearized pass{{}, Graph("linear", target), {}};
  const Values tangents = tangent_inputs(pass.linear, chosen(types_of(x), active));
  finish_linearized(pass, push_forward(target, program, zip_duals(x, Reader(tangents).spread(active)), PassMode::reverse));
  return pass;
}

void finish_linearized(Linearized& pass, std::span<const Dual> results) {
  pass.results = primals_of(results);
  pass.varying = has_tangent(results);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].tangent) pass.linear.output("out" + std::to_string(i), results[i].tangent);
}

Values pull_back(GraphData& target, const Linearized& pass, const Values& cotangents) {
  Values dx = transpose_linear(target, pass.linear, residuals_of(pass.linear), chosen(cotangents, pass.varying));
  dx.resize(pass.linear.inputs().size() - pass.linear.captures().size());
  return dx;
}

}  // namespace rlx
