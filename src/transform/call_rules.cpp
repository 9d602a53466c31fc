// Derivatives of call: its own rules, recomputation in reverse mode, or simply its function.
#include <algorithm>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "transform/control_rules.h"
#include "transform/linear_call.h"
#include "transform/pull_back.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

void append(Values& to, const Values& more) { to.insert(to.end(), more.begin(), more.end()); }

std::size_t own_operands(const Call& op, const Values& x) { return x.size() - static_cast<std::size_t>(op.captured); }

/// A rule does not know of captured values, so their tangents would be lost.
void check_captures(const Call& op, const Values& x, const Values& dx, std::string_view rule) {
  for (std::size_t i = own_operands(op, x); i < x.size(); ++i)
    if (dx[i])
      fail("rlx.call: not differentiable: '{}' has a {} of its own and captures {}, by which it is differentiated: pass that as an operand",
           op.function->name(), rule, x[i].type().to_string());
}

/// Tangents or cotangents for those of `values` that carry one, zeros for null.
Values all_tangents(GraphData& target, const Values& values, const Values& tangents) {
  Values result;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (carries_tangent(values[i].type())) result.push_back(materialized(target, tangents[i], values[i].type()));
  return result;
}

/// One entry for each of `values`: the next of `given` where it carries a tangent.
Values spread_tangents(const Values& values, const Values& given) {
  std::vector<bool> marks;
  for (Value v : values) marks.push_back(carries_tangent(v.type()));
  return Reader(given).spread(marks);
}

std::vector<Dual> by_jvp_rule(GraphData& target, const Call& op, const Values& x, const Values& dx) {
  check_captures(op, x, dx, "jvp");
  const auto split = x.begin() + static_cast<std::ptrdiff_t>(own_operands(op, x));
  const Values own(x.begin(), split), y = inline_graph(target, *op.function, x);
  Values operands = own;
  append(operands, all_tangents(target, own, dx));
  append(operands, Values(split, x.end()));
  return zip_duals(y, spread_tangents(y, inline_graph(target, *op.jvp_rule, operands)));
}

std::vector<Dual> by_vjp_rule(GraphData& target, const Call& op, const Values& x, const Values& dx) {
  check_captures(op, x, dx, "vjp");
  const Values results = inline_graph(target, *op.forward_rule, x);
  const auto split = results.begin() + std::ssize(op.function->outputs());
  const Values y(results.begin(), split);
  Values residuals(split, results.end());
  const std::size_t kept = residuals.size();
  append(residuals, {x.begin() + static_cast<std::ptrdiff_t>(own_operands(op, x)), x.end()});
  const Values tangents = linear_call(y, chosen(dx, has_tangent(zip_duals(x, dx))), residuals, [&](const Values& dy, const Values& saved) {
    const auto end = saved.begin() + static_cast<std::ptrdiff_t>(kept);
    Values operands(saved.begin(), end), wanted;
    for (Value v : dy)
      if (v) operands.push_back(v);
    append(operands, {end, saved.end()});
    const Values all = spread_tangents({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(own_operands(op, x))},
                                       inline_graph(*op.backward_rule, operands));
    for (std::size_t i = 0; i < all.size(); ++i)
      if (dx[i]) wanted.push_back(all[i]);
    return wanted;
  });
  return zip_duals(y, tangents);
}

/// Whether the body says everything about the op: it brings no derivative of its own.
bool is_transparent(const Node& node) {
  if (!node.op->body || node.op->jvp || node.op->vjp) return false;
  if (node.op != &Op<Call>::def()) return true;
  const Call call = Op<Call>::from(node.attrs);
  return !call.jvp_rule && !call.forward_rule && !call.batch_rule && call.save == Save::everything && call.mark.empty();
}

/// The graph with composites replaced by their bodies, so that every dot and every name is seen.
Graph flat(const Graph& graph) {
  Rebuilder out(graph);
  bool changed = false;
  for (std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    if (!is_transparent(node)) {
      out.copy(id);
    } else {
      changed = true;
      out.replace(id, node.op->body(node.attrs, out.operands(id)));
    }
  }
  const Graph once = out.finish();
  return changed ? flat(once) : once;
}

bool is_unbatched_dot(const Node& node) {
  const auto& fields = node.op->fields;
  const auto batch = std::ranges::find(fields, "lhs_batch", &Field::name);
  return batch != fields.end() && std::get<std::vector<std::int64_t>>(node.attrs[static_cast<std::size_t>(batch - fields.begin())]).empty();
}

/// Whether the call saves the node's result: sums of products of two operands, and what has a name.
bool saves(const Call& call, const Node& node) {
  if (node.op == &Op<Call>::def()) {
    const std::string mark = Op<Call>::from(node.attrs).mark;
    return !mark.empty() && fmt::format(",{},", call.marks).find(fmt::format(",{},", mark)) != std::string::npos;
  }
  if (!node.op->loop || node.operands.size() != 2) return false;
  return call.save == Save::dots || (call.save == Save::unbatched_dots && is_unbatched_dot(node));
}

std::vector<ValueId> saved_results(const Call& call, const Graph& graph) {
  std::vector<ValueId> ids;
  for (std::int32_t id : needed_nodes(graph.data(), output_ids(graph)))
    if (saves(call, graph.node(id))) ids.push_back({id, 0});
  return ids;
}

std::vector<Dual> run_keeping(GraphData& target, const Graph& program, const std::vector<Dual>& operands, const std::vector<ValueId>& keep,
                              const std::map<ValueId, Value>& known, Values& kept) {
  ForwardPass pass(program.data(), target, PassMode::reverse);
  for (std::size_t i = 0; i < operands.size(); ++i) pass.bind(program.inputs()[i].second.id(), operands[i]);
  pass.reuse(known);
  const std::vector<ValueId> outputs = output_ids(program);
  pass.run(needed_nodes(program.data(), outputs));
  for (ValueId id : keep) kept.push_back(pass.at(id).primal);
  std::vector<Dual> results;
  for (ValueId id : outputs) results.push_back(pass.at(id));
  return results;
}

/// Reverse mode that saves the operands and what the call says, and computes the rest again.
std::vector<Dual> by_recomputation(GraphData& target, const Call& op, const Values& x, const Values& dx) {
  const Graph program = op.save == Save::nothing && op.marks.empty() ? *op.function : flat(*op.function);
  const std::vector<ValueId> keep = saved_results(op, program);
  const std::vector<bool> active = has_tangent(zip_duals(x, dx));
  Values saved = x, kept;
  const Values y = primals_of(run_keeping(target, program, zip_duals(x, Values(x.size())), keep, {}, kept));
  append(saved, kept);
  const Values tangents = linear_call(y, chosen(dx, active), saved, [&](const Values& dy, const Values& residuals) {
    Values again, unused;
    GraphData& graph = residuals[0].graph();
    // The forward pass begins when the cotangents are there, and shares nothing with the first one.
    const Value token = *std::find_if(dy.begin(), dy.end(), [](Value v) { return bool(v); });
    for (std::size_t i = 0; i < x.size(); ++i) again.push_back(after(residuals[i], token));
    std::map<ValueId, Value> known;
    for (std::size_t i = 0; i < keep.size(); ++i) known[keep[i]] = after(residuals[x.size() + i], token);
    Linearized pass{{}, Graph("linear", graph), {}};
    const Values directions = tangent_inputs(pass.linear, chosen(types_of(x), active));
    const std::vector<Dual> results = run_keeping(graph, program, zip_duals(again, Reader(directions).spread(active)), {}, known, unused);
    finish_linearized(pass, results);
    return pull_back(graph, pass, dy);
  });
  return zip_duals(y, tangents);
}

}  // namespace

std::vector<Dual> differentiate_call(GraphData& target, const Attrs& attrs, const std::vector<Dual>& operands, PassMode mode) {
  const Call op = Op<Call>::from(attrs);
  const Values x = primals_of(operands), dx = tangents_of(operands);
  if (op.forward_rule && mode == PassMode::reverse) return by_vjp_rule(target, op, x, dx);
  if (op.jvp_rule) return by_jvp_rule(target, op, x, dx);
  if (op.save != Save::everything && mode == PassMode::reverse) return by_recomputation(target, op, x, dx);
  return push_forward(target, *op.function, operands, mode);
}

}  // namespace rlx
