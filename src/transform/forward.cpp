#include "transform/forward.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "transform/control_rules.h"
#include "transform/linear_call.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

bool any(const Values& values) {
  return std::any_of(values.begin(), values.end(), [](Value v) { return bool(v); });
}

std::vector<Dual> without_tangents(const Values& primals) { return zip_duals(primals, Values(primals.size())); }

/// The body of a composite, differentiated.
std::vector<Dual> differentiate_body(GraphData& target, const OpDef& op, const Attrs& attrs, std::span<const Dual> operands,
                                     PassMode mode) {
  const Graph body =
      trace_region(std::string(op.name), nullptr, types_of(primals_of(operands)), [&](const Values& x) { return op.body(attrs, x); });
  return push_forward(target, body, operands, mode);
}

/// An op that is linear in all its differentiable operands, applied to their tangents.
Values apply_linear(GraphData& target, const OpDef& op, const Attrs& attrs, const Values& x, const Values& dx) {
  Values arguments;
  for (std::size_t i = 0; i < x.size(); ++i)
    arguments.push_back(is_differentiable_operand(op, i, x[i].type()) ? materialized(target, dx[i], x[i].type()) : x[i]);
  return apply(op, attrs, arguments);
}

void check_tangents(const OpDef& op, const Values& y, Values& dy) {
  if (dy.size() != y.size()) fail_internal("rlx.{}: {} tangents for {} results", op.name, dy.size(), y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!carries_tangent(y[i].type())) dy[i] = {};
    if (dy[i] && !(dy[i].type() == y[i].type()))
      fail_internal("rlx.{}: tangent {} is {}, the result is {}", op.name, i, dy[i].type().to_string(), y[i].type().to_string());
  }
}

/// Forward mode needs the tangent now; reverse mode may turn out not to.
Values refused(const OpDef& op, const Values& y, const Values& dx, PassMode mode) {
  const std::string message =
      fmt::format("rlx.{}: not differentiable: {}", op.name, op.not_differentiable.empty() ? "it has no rule" : op.not_differentiable);
  if (mode == PassMode::forward) fail("{}", message);
  return linear_refusal(y, dx, message);
}

/// The rules that an op itself brings: its reverse rule, its jvp, or its linearity.
std::vector<Dual> apply_rules(GraphData& target, const OpDef& op, const Attrs& attrs, const Values& x, const Values& dx, PassMode mode) {
  const Values y = emit(target, op, attrs, x);
  if (std::none_of(y.begin(), y.end(), [](Value v) { return carries_tangent(v.type()); })) return without_tangents(y);
  if (mode == PassMode::reverse && op.has_vjp(attrs, types_of(x))) return zip_duals(y, linear_by_vjp(op, attrs, x, y, dx));
  Values dy;
  if (op.jvp) dy = op.jvp(attrs, x, y, dx);
  else if (op.transpose) dy = apply_linear(target, op, attrs, x, dx);
  else dy = refused(op, y, dx, mode);
  check_tangents(op, y, dy);
  return zip_duals(y, dy);
}

}  // namespace

std::vector<Dual> differentiate(GraphData& target, const OpDef& op, const Attrs& attrs, std::span<const Dual> operands, PassMode mode) {
  const Values x = primals_of(operands);
  Values dx = tangents_of(operands);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!is_differentiable_operand(op, i, x[i].type())) dx[i] = {};
  if (!any(dx)) return without_tangents(emit(target, op, attrs, x));
  if (const ControlRule rule = control_rule(op)) return rule(target, attrs, zip_duals(x, dx), mode);
  const bool has_rule =
      op.jvp || op.transpose || (mode == PassMode::reverse && op.has_vjp(attrs, types_of(x))) || !op.not_differentiable.empty();
  if (op.body && !has_rule) return differentiate_body(target, op, attrs, zip_duals(x, dx), mode);
  return apply_rules(target, op, attrs, x, dx, mode);
}

void ForwardPass::run(std::span<const std::int32_t> nodes) {
  for (std::int32_t id : nodes) step(id);
}

Dual ForwardPass::at(ValueId id) const {
  if (auto it = duals_.find(id); it != duals_.end()) return it->second;
  if (&source_ != &target_) fail_internal("derivative of '{}': node {} was not visited", source_.name, id.node);
  return {Value(&source_, id), {}};
}

void ForwardPass::step(std::int32_t id) {
  const Node& node = source_.node(id);
  std::vector<Dual> operands;
  bool unchanged = &source_ == &target_;
  for (ValueId operand : node.operands) {
    operands.push_back(at(operand));
    unchanged = unchanged && !operands.back().tangent && operands.back().primal == Value(&source_, operand);
  }
  if (!unchanged) store(id, differentiate(target_, *node.op, node.attrs, operands, mode_));
}

void ForwardPass::store(std::int32_t id, const std::vector<Dual>& results) {
  for (std::size_t r = 0; r < results.size(); ++r) {
    const ValueId result{id, static_cast<std::int32_t>(r)};
    Dual dual = results[r];
    if (auto it = known_.find(result); it != known_.end()) dual.primal = it->second;
    duals_.try_emplace(result, dual);  // what the caller bound stays
  }
}

std::vector<Dual> push_forward(GraphData& target, const Graph& graph, std::span<const Dual> operands, PassMode mode) {
  ForwardPass pass(graph.data(), target, mode);
  for (std::size_t i = 0; i < operands.size(); ++i) pass.bind(graph.inputs()[i].second.id(), operands[i]);
  const std::vector<ValueId> outputs = output_ids(graph);
  pass.run(needed_nodes(graph.data(), outputs));
  std::vector<Dual> results;
  for (ValueId id : outputs) results.push_back(pass.at(id));
  return results;
}

Values primals_of(std::span<const Dual> duals) {
  Values values;
  for (const Dual& dual : duals) values.push_back(dual.primal);
  return values;
}

Values tangents_of(std::span<const Dual> duals) {
  Values values;
  for (const Dual& dual : duals) values.push_back(dual.tangent);
  return values;
}

std::vector<Dual> zip_duals(const Values& primals, const Values& tangents) {
  std::vector<Dual> duals;
  for (std::size_t i = 0; i < primals.size(); ++i) duals.push_back({primals[i], tangents[i]});
  return duals;
}

}  // namespace rlx
