// Derivatives of cond.
#include "ir/graph_data.h"
#include "ir/region.h"
#include "transform/control_rules.h"
#include "transform/linear_call.h"
#include "transform/pull_back.h"
#include "transform/tangent.h"
#include "transform/transpose.h"

namespace rlx {

namespace {

std::vector<bool> either(const std::vector<bool>& a, const std::vector<bool>& b) {
  std::vector<bool> result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] || b[i]);
  return result;
}

/// The branch on operands and the tangents of the active ones: results, then tangents of the varying ones.
Region forward_branch(const Graph& branch, const std::vector<bool>& active, const std::vector<bool>& varying) {
  std::vector<Type> types = input_types(branch);
  for (const Type& type : chosen(input_types(branch), active)) types.push_back(type);
  return closed_region(branch.name(), types, [&](const Values& in) {
    Reader reader(in);
    const Values x = reader.take(active.size());
    const std::vector<Dual> y = push_forward(in[0].graph(), branch, zip_duals(x, reader.spread(active)), PassMode::forward);
    Values results = primals_of(y);
    for (std::size_t i = 0; i < y.size(); ++i)
      if (varying[i]) results.push_back(materialized(in[0].graph(), y[i].tangent, y[i].primal.type()));
    return results;
  });
}

std::vector<Dual> forward_cond(const Cond& op, const Values& x, const Values& dx) {
  const std::span<const Value> operands = std::span(x).subspan(1), tangents = std::span(dx).subspan(1);
  const std::vector<bool> active = has_tangent(zip_duals({operands.begin(), operands.end()}, {tangents.begin(), tangents.end()}));
  const std::vector<bool> varying =
      either(varying_outputs(*op.then, active, PassMode::forward), varying_outputs(*op.otherwise, active, PassMode::forward));
  Values all = x;
  for (Value v : chosen(tangents, active)) all.push_back(v);
  const Values results = make_cond({forward_branch(*op.then, active, varying), forward_branch(*op.otherwise, active, varying)}, all);
  Reader reader(results);
  const Values y = reader.take(varying.size());
  return zip_duals(y, reader.spread(varying));
}

/// The branch's backward pass: operands, then cotangents of the results that carry one; gives those of the active operands. What the
/// forward pass computed inside the branch is computed again: the two branches would have to save different values.
Region backward_branch(const Graph& branch, const std::vector<bool>& active, const std::vector<Type>& dy) {
  std::vector<Type> types = input_types(branch);
  types.insert(types.end(), dy.begin(), dy.end());
  return closed_region(branch.name(), types, [&](const Values& in) {
    Reader reader(in);
    const Values x = reader.take(active.size());
    const Linearized pass = linearize(in[0].graph(), branch, x, active);
    Values cotangents;
    for (Value y : pass.results) cotangents.push_back(carries_tangent(y.type()) ? reader.next() : Value());
    Values dx = pull_back(in[0].graph(), pass, cotangents);
    for (std::size_t i = 0, next = 0; i < active.size(); ++i)
      if (active[i]) dx[next] = materialized(in[0].graph(), dx[next], x[i].type()), ++next;
    return dx;
  });
}

std::vector<Dual> reverse_cond(const Cond& op, const Values& x, const Values& dx) {
  const Values y = make_cond(op, x);
  std::vector<bool> active;
  for (std::size_t i = 1; i < x.size(); ++i) active.push_back(bool(dx[i]));
  const Values tangents = linear_call(y, dx, x, [&](const Values& dy, const Values& saved) {
    Values all = saved;
    std::vector<Type> types;
    for (Value v : dy)
      if (v) all.push_back(v), types.push_back(v.type());
    return make_cond({backward_branch(*op.then, active, types), backward_branch(*op.otherwise, active, types)}, all);
  });
  return zip_duals(y, tangents);
}

}  // namespace

std::vector<Dual> differentiate_cond(GraphData&, const Attrs& attrs, const std::vector<Dual>& operands, PassMode mode) {
  const Cond op = Op<Cond>::from(attrs);
  const Values x = primals_of(operands), dx = tangents_of(operands);
  return mode == PassMode::forward ? forward_cond(op, x, dx) : reverse_cond(op, x, dx);
}

Values Cond::jvp(const Cond& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
  return tangents_of(forward_cond(op, {x.begin(), x.end()}, {dx.begin(), dx.end()}));
}

Values Cond::transpose(const Cond& op, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
  if (linear[0]) fail_internal("rlx.cond: not linear in its predicate");
  Values operands{x[0]}, residuals, given;
  std::vector<Type> types;
  for (std::size_t i = 1; i < x.size(); ++i)
    if (!linear[i]) residuals.push_back(x[i]);
  for (Value v : dy)
    if (v) given.push_back(v);
  operands.insert(operands.end(), residuals.begin(), residuals.end());
  operands.insert(operands.end(), given.begin(), given.end());
  auto backward = [&](const Graph& branch) {
    return closed_region(branch.name(), types_of(std::span(operands).subspan(1)), [&](const Values& in) {
      Reader reader(in);
      Values values, cotangents, wanted;
      for (std::size_t i = 1; i < x.size(); ++i) values.push_back(linear[i] ? Value() : reader.next());
      for (Value v : dy) cotangents.push_back(v ? reader.next() : Value());
      const Values dx = transpose_linear(in[0].graph(), branch, values, cotangents);
      for (std::size_t i = 0; i < dx.size(); ++i)
        if (linear[i + 1]) wanted.push_back(materialized(in[0].graph(), dx[i], x[i + 1].type()));
      return wanted;
    });
  };
  const Values results = make_cond({backward(*op.then), backward(*op.otherwise)}, operands);
  return Reader(results).spread(linear);
}

}  // namespace rlx
