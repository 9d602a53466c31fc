// Functions with rules of their own: each becomes a call node with the rule as a region.
#include <algorithm>

#include <fmt/ranges.h>

#include "ir/graph_data.h"
#include "ir/region.h"
#include "ops/control/control.h"
#include "rlx/host_call.h"
#include "rlx/transform.h"
#include "transform/batching.h"
#include "transform/custom.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

void append(std::vector<Type>& to, const std::vector<Type>& more) { to.insert(to.end(), more.begin(), more.end()); }

std::vector<Type> varying(const std::vector<Type>& types) {
  std::vector<Type> result;
  std::copy_if(types.begin(), types.end(), std::back_inserter(result), carries_tangent);
  return result;
}

/// One entry for each type: the next value where it carries a tangent, else null.
Values spread(const std::vector<Type>& types, Values::const_iterator given) {
  Values result;
  for (const Type& type : types) result.push_back(carries_tangent(type) ? *given++ : Value());
  return result;
}

/// The entries for types that carry a tangent; null becomes zero.
Values collect(std::string_view rule, GraphData& graph, const std::vector<Type>& types, const Values& given) {
  if (given.size() != types.size()) fail("rlx.{}: the rule gives {} values for {}", rule, given.size(), types.size());
  Values result;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!carries_tangent(types[i])) continue;
    if (given[i] && !(given[i].type() == types[i]))
      fail("rlx.{}: the rule gives {} for a value of {}", rule, given[i].type().to_string(), types[i].to_string());
    result.push_back(materialized(graph, given[i], types[i]));
  }
  return result;
}

/// A call node of regions that may capture values of the operands' graph.
Values call(Call op, const Values& x, const std::vector<Graph>& traced, const std::vector<Region Call::*>& regions) {
  const ClosedRegions closed = close_regions(traced);
  for (std::size_t i = 0; i < regions.size(); ++i) op.*regions[i] = closed.regions[i];
  op.captured = std::ssize(closed.captures);
  Values operands = x;
  operands.insert(operands.end(), closed.captures.begin(), closed.captures.end());
  return make_call(op, operands);
}

void check_mark(const std::string& name) {
  if (name.empty() || name.find(',') != std::string::npos)
    fail("rlx.checkpoint: a name '{}' (allowed: one that is not empty, without commas)", name);
}

}  // namespace

Function checkpoint(Function function, Save save, const std::vector<std::string>& names) {
  for (const std::string& each : names) check_mark(each);
  return [=](const Values& x) {
    Call op;
    op.save = save;
    op.marks = fmt::format("{}", fmt::join(names, ","));
    return call(op, x, {trace_region("checkpoint", &innermost_graph("checkpoint", x), types_of(x), function)}, {&Call::function});
  };
}

Value checkpoint_name(Operand x, const std::string& name) {
  check_mark(name);
  Call op;
  op.mark = name;
  const Values operands{x};
  const auto same = [](const Values& v) { return v; };
  return call(op, operands, {trace_region(name, &innermost_graph("checkpoint_name", operands), types_of(operands), same)},
              {&Call::function})[0];
}

Function custom_op(std::string name, Function body) {
  return [=](const Values& x) {
    Call op;
    op.label = name;
    return call(op, x, {trace_region(name, &innermost_graph("custom_op", x), types_of(x), body)}, {&Call::function});
  };
}

Function custom_jvp(Function function, JvpRule rule) {
  return [=](const Values& x) {
    GraphData& graph = innermost_graph("custom_jvp", x);
    const std::vector<Type> types = types_of(x);
    const Graph traced = trace_region("custom_jvp", &graph, types, function);
    const std::vector<Type> results = output_types(traced);
    std::vector<Type> inputs = types;
    append(inputs, varying(types));
    const Graph traced_rule = trace_region("jvp_rule", &graph, inputs, [&](const Values& in) {
      const auto split = in.begin() + std::ssize(types);
      return collect("custom_jvp", in[0].graph(), results, rule(Values(in.begin(), split), spread(types, split)));
    });
    return call({}, x, {traced, traced_rule}, {&Call::function, &Call::jvp_rule});
  };
}

Function custom_vjp(Function function, VjpForward forward, VjpBackward backward) {
  return [=](const Values& x) {
    GraphData& graph = innermost_graph("custom_vjp", x);
    const std::vector<Type> types = types_of(x);
    const Graph traced = trace_region("custom_vjp", &graph, types, function);
    const std::vector<Type> results = output_types(traced);
    std::vector<Type> inputs;
    const Graph traced_forward = trace_region("forward_rule", &graph, types, [&](const Values& in) {
      auto [y, residuals] = forward(in);
      if (types_of(y) != results) fail("rlx.custom_vjp: the forward rule does not give the results of the function");
      inputs = types_of(residuals);
      y.insert(y.end(), residuals.begin(), residuals.end());
      return y;
    });
    const auto kept = std::ssize(inputs);
    append(inputs, varying(results));
    const Graph traced_backward = trace_region("backward_rule", &graph, inputs, [&](const Values& in) {
      const auto split = in.begin() + kept;
      return collect("custom_vjp", in[0].graph(), types, backward(Values(in.begin(), split), spread(results, split)));
    });
    return call({}, x, {traced, traced_forward, traced_backward}, {&Call::function, &Call::forward_rule, &Call::backward_rule});
  };
}

Function custom_vmap(Function function, VmapRule rule) {
  return [=](const Values& x) {
    GraphData& graph = innermost_graph("custom_vmap", x);
    std::vector<Type> types = types_of(x);
    const Graph traced = trace_region("custom_vmap", &graph, types, function);
    for (Type& type : types) type = batched_type(type, call_batch_size());
    const Graph traced_rule = trace_region("batch_rule", &graph, types, rule);
    std::vector<Type> wanted = output_types(traced);
    for (Type& type : wanted) type = batched_type(type, call_batch_size());
    if (output_types(traced_rule) != wanted)
      fail("rlx.custom_vmap: the rule must give the results of the function with the batch as axis 0");
    return call({}, x, {traced, traced_rule}, {&Call::function, &Call::batch_rule});
  };
}

Call call_with_rules(const OpDef& op, const Attrs& attrs, const std::vector<Type>& operands) {
  auto body = [&](const Values& x) { return op.body(attrs, x); };
  const auto count = std::ssize(operands);
  Call call;
  call.function = closed_region(std::string(op.name), operands, body);
  const std::vector<Type> results = output_types(*call.function);
  if (op.jvp) {
    std::vector<Type> inputs = operands;
    append(inputs, varying(operands));
    call.jvp_rule = closed_region("jvp_rule", inputs, [&](const Values& in) {
      const auto split = in.begin() + count;
      const Values x(in.begin(), split);
      return collect(op.name, in[0].graph(), results, op.jvp(attrs, x, body(x), spread(operands, split)));
    });
  }
  if (op.has_vjp(attrs, operands)) {
    std::vector<Type> inputs = operands;
    append(inputs, results);
    append(inputs, varying(results));
    call.forward_rule = closed_region("forward_rule", operands, [&](const Values& x) {
      Values y = body(x), kept = x;
      kept.insert(kept.end(), y.begin(), y.end());
      y.insert(y.end(), kept.begin(), kept.end());
      return y;
    });
    call.backward_rule = closed_region("backward_rule", inputs, [&](const Values& in) {
      const auto end = in.begin() + count, split = end + std::ssize(results);
      return collect(op.name, in[0].graph(), operands, op.vjp(attrs, Values(in.begin(), end), Values(end, split), spread(results, split)));
    });
  }
  return call;
}

}  // namespace rlx
