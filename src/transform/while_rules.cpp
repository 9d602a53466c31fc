// Derivatives of while: forward mode only.
#include "ir/graph_data.h"
#include "ir/region.h"
#include "transform/control_rules.h"
#include "transform/linear_call.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

std::vector<Dual> forward_while(GraphData& target, const While& op, const std::vector<Dual>& operands) {
  const auto carries = static_cast<std::size_t>(op.carries);
  const DualLayout layout{{carries, operands.size() - carries}, stable_carry(*op.step, carries, has_tangent(operands), PassMode::forward)};
  const Values x = primals_of(operands), dx = with_active_zeros(target, x, tangents_of(operands), layout.active);
  const std::vector<Type> own = types_of(x), types = layout.interleave(own, own);
  While loop;
  loop.condition = closed_region("condition", types, [&](const Values& in) {
    const std::vector<Dual> primal = zip_duals(primals_of(layout.read(in)), Values(x.size()));
    return primals_of(push_forward(in[0].graph(), *op.condition, primal, PassMode::forward));
  });
  loop.step = closed_region("step", types, [&](const Values& in) {
    const std::vector<Dual> next = push_forward(in[0].graph(), *op.step, layout.read(in), PassMode::forward);
    Values results = primals_of(next);
    for (std::size_t i = 0; i < carries; ++i)
      if (layout.active[i]) results.push_back(materialized(in[0].graph(), next[i].tangent, own[i]));
    return results;
  });
  loop.carries = std::ssize(loop.step->outputs());
  const Values results = make_while(loop, layout.interleave(x, dx));
  Reader reader(results);
  const Values y = reader.take(carries);
  return zip_duals(y, reader.spread(layout.active_in(0)));
}

}  // namespace

std::vector<Dual> differentiate_while(GraphData& target, const Attrs& attrs, const std::vector<Dual>& operands, PassMode mode) {
  const While op = Op<While>::from(attrs);
  if (mode == PassMode::forward) return forward_while(target, op, operands);
  const Values y = make_while(op, primals_of(operands));
  return zip_duals(
      y, linear_refusal(y, tangents_of(operands),
                        "rlx.while: not differentiable in reverse mode: the number of iterations is unknown (use scan or fori_loop, or "
                        "forward mode)"));
}

Values While::jvp(const While& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
  return tangents_of(forward_while(innermost_graph(name, dx), op, zip_duals({x.begin(), x.end()}, {dx.begin(), dx.end()})));
}

}  // namespace rlx
