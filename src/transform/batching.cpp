#include "transform/batching.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "ir/sources.h"
#include "rlx/ops.h"
#include "transform/custom.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

Values values_of(std::span<const Batched> operands) {
  Values values;
  for (const Batched& operand : operands) values.push_back(operand.value);
  return values;
}

std::vector<bool> marks_of(std::span<const Batched> operands) {
  std::vector<bool> marks;
  for (const Batched& operand : operands) marks.push_back(operand.batched);
  return marks;
}

std::vector<Batched> all_marked(const Values& values, bool batched) {
  std::vector<Batched> results;
  for (Value v : values) results.push_back({v, batched});
  return results;
}

/// The attribute for operands that have one more axis in front.
Attr lifted(const Field& field, const Attr& attr, const Dim& size) {
  auto shifted = [](Ints axes) {
    for (auto& axis : axes) ++axis;
    return axes;
  };
  auto with_front = [&](const Dim& front) {
    Dims dims = std::get<Dims>(attr);
    dims.insert(dims.begin(), front);
    return dims;
  };
  switch (field.role) {
    case Role::plain: return attr;
    case Role::axis: return std::get<std::int64_t>(attr) + 1;
    case Role::axes: return shifted(std::get<Ints>(attr));
    case Role::perm: {
      Ints axes = shifted(std::get<Ints>(attr));
      axes.insert(axes.begin(), 0);
      return axes;
    }
    case Role::sizes:
    case Role::per_dim_size: return with_front(size);
    case Role::per_dim_zero: return with_front(0);
    case Role::per_dim_one: return with_front(1);
  }
  return attr;
}

/// A composite of one operand whose meaning is tied to axes by typed attributes alone; numbers and flags do not name axes.
bool names_its_axes(const OpDef& op, std::size_t operands) {
  bool names_axes = false;
  for (const Field& field : op.fields) {
    const bool is_number = field.kind == Attr(true).index() || field.kind == Attr(0.0).index();
    if (field.role == Role::plain && !is_number) return false;
    names_axes = names_axes || field.role != Role::plain;
  }
  return operands == 1 && names_axes;
}

Graph trace_body(const OpDef& op, const Attrs& attrs, const std::vector<Type>& operands) {
  return trace_region(std::string(op.name), nullptr, operands, [&](const Values& in) { return op.body(attrs, in); });
}

/// Whether every element of the result is one of the only operand.
bool copies_elements(const Node& node, const std::vector<Type>& operands) {
  if (!node.op->sources || operands.size() != 1) return false;
  std::vector<Index> at;
  for (const Dim& extent : node.results[0].shape) at.push_back(Index::variable(static_cast<int>(at.size()), extent));
  const std::vector<Source> sources = node.op->sources(node.attrs, operands, node.results[0], at);
  return sources.size() == 1 && sources[0].guards.empty();
}

/// Whether each element of the results is computed from the operands' elements at the same place alone.
bool is_elementwise(const Graph& body) {
  const std::vector<ValueId> outputs = output_ids(body);
  std::vector<bool> varies(body.size(), false);
  for (const auto& [input, value] : body.inputs()) {
    varies[static_cast<std::size_t>(value.id().node)] = true;
    if (!(input.type.shape == body.inputs()[0].first.type.shape)) return false;
  }
  for (std::int32_t id : needed_nodes(body.data(), outputs)) {
    const Node& node = body.node(id);
    std::vector<Type> types;
    for (ValueId operand : node.operands) {
      types.push_back(body.type(operand));
      if (varies[static_cast<std::size_t>(operand.node)]) varies[static_cast<std::size_t>(id)] = true;
    }
    if (varies[static_cast<std::size_t>(id)]) {
      if (node.op->kind != OpKind::scalar && !(node.op->body && is_elementwise(trace_body(*node.op, node.attrs, types)))) return false;
    } else {
      const Array* constant = constant_value(node);  // the same number everywhere
      if (!(constant && constant->size() == 1) && node.op->kind != OpKind::scalar && !copies_elements(node, types)) return false;
    }
  }
  return std::all_of(outputs.begin(), outputs.end(), [&](ValueId id) { return varies[static_cast<std::size_t>(id.node)]; });
}

std::vector<Batched> batch_by_roles(const OpDef& op, const Attrs& attrs, std::span<const Batched> operands, const Dim& size) {
  Values values;
  for (const Batched& operand : operands) values.push_back(with_batch(operand, size));
  Attrs changed;
  for (std::size_t i = 0; i < attrs.size(); ++i) changed.push_back(lifted(op.fields[i], attrs[i], size));
  return all_marked(apply(op, changed, values), true);
}

/// A composite stays whole where that is safe: its rules and claims stay with it. Otherwise its body runs on the batch, and its own
/// derivatives go along as those of a call.
std::vector<Batched> batch_composite(GraphData& target, const OpDef& op, const Attrs& attrs, std::span<const Batched> operands,
                                     const Dim& size) {
  std::vector<Type> types;
  for (const Batched& operand : operands) {
    types.push_back(operand.value.type());
    if (operand.batched) types.back().shape.erase(types.back().shape.begin());
  }
  if (names_its_axes(op, operands.size())) return batch_by_roles(op, attrs, operands, size);
  const Graph body = trace_body(op, attrs, types);
  if (is_elementwise(body)) return batch_by_roles(op, attrs, operands, size);
  if (!op.jvp && !op.has_vjp(attrs, types)) return batch_graph(target, body, operands, size);
  return all_marked(Call::batch(call_with_rules(op, attrs, types), values_of(operands), marks_of(operands), size), true);
}

}  // namespace

Type batched_type(Type type, const Dim& size) {
  type.shape.insert(type.shape.begin(), size);
  return type;
}

Value with_batch(const Batched& value, const Dim& size) {
  if (value.batched) return value.value;
  Ints axes(value.value.shape().size());
  std::iota(axes.begin(), axes.end(), 1);
  return broadcast(value.value, batched_type(value.value.type(), size).shape, axes);
}

std::vector<Batched> batch_op(GraphData& target, const OpDef& op, const Attrs& attrs, std::span<const Batched> operands, const Dim& size) {
  const Values x = values_of(operands);
  const std::vector<bool> marks = marks_of(operands);
  if (std::find(marks.begin(), marks.end(), true) == marks.end()) return all_marked(emit(target, op, attrs, x), false);
  if (op.batch) return all_marked(op.batch(attrs, x, marks, size), true);
  return op.body ? batch_composite(target, op, attrs, operands, size) : batch_by_roles(op, attrs, operands, size);
}

std::vector<Batched> batch_graph(GraphData& target, const Graph& graph, std::span<const Batched> operands, const Dim& size) {
  std::map<ValueId, Batched> values;
  for (std::size_t i = 0; i < operands.size(); ++i) values[graph.inputs()[i].second.id()] = operands[i];
  const std::vector<ValueId> outputs = output_ids(graph);
  for (std::int32_t id : needed_nodes(graph.data(), outputs)) {
    const Node& node = graph.node(id);
    std::vector<Batched> given;
    for (ValueId operand : node.operands) given.push_back(values.at(operand));
    const std::vector<Batched> results = batch_op(target, *node.op, node.attrs, given, size);
    for (std::size_t r = 0; r < results.size(); ++r) values[{id, static_cast<std::int32_t>(r)}] = results[r];
  }
  std::vector<Batched> results;
  for (ValueId id : outputs) results.push_back(values.at(id));
  return results;
}

}  // namespace rlx
