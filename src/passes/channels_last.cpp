#include "passes/channels_last.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ops/contraction/convolution.h"
#include "passes/conv_as_dot.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

/// A value as another one, `stored`, with its axes in another order: axis i is axis order[i] of that.
struct Reordered {
  Value stored;
  Ints order;
};

Ints inverse(const Ints& order) {
  Ints result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) result[at(order[i])] = static_cast<std::int64_t>(i);
  return result;
}

/// The attribute of an op for an operand whose axes are in that order.
Attr reordered(const Field& field, const Attr& attr, const Ints& order) {
  switch (field.role) {
    case Role::axis: return order[at(std::get<std::int64_t>(attr))];
    case Role::axes: {
      Ints axes;
      for (std::int64_t axis : std::get<Ints>(attr)) axes.push_back(order[at(axis)]);
      std::sort(axes.begin(), axes.end());
      return axes;
    }
    case Role::per_dim_zero:
    case Role::per_dim_one:
    case Role::per_dim_size: {
      Dims dims = std::get<Dims>(attr);
      for (std::size_t i = 0; i < order.size(); ++i) dims[at(order[i])] = std::get<Dims>(attr)[i];
      return dims;
    }
    default: return attr;
  }
}

/// The order of what is left without some axes.
Ints without(const Ints& order, const Ints& axes) {
  Ints kept, result;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) == axes.end()) kept.push_back(order[i]);
  for (std::int64_t axis : kept)
    result.push_back(std::count_if(kept.begin(), kept.end(), [&](std::int64_t other) { return other < axis; }));
  return result;
}

/// The order where an axis became two.
Ints with_two_of(const Ints& order, std::int64_t axis) {
  const std::int64_t stored = order[at(axis)];
  Ints result;
  for (std::int64_t each : order) result.push_back(each + (each > stored));
  result.insert(result.begin() + axis + 1, stored + 1);
  return result;
}

/// The order where an axis and the one behind it became one; nothing where they do not lie so.
std::optional<Ints> with_one_of(const Ints& order, std::int64_t axis) {
  const std::int64_t stored = order[at(axis)];
  if (order[at(axis) + 1] != stored + 1) return std::nullopt;
  Ints result;
  for (std::int64_t each : order)
    if (each != stored + 1) result.push_back(each - (each > stored));
  return result;
}

/// Whether the result of an op has the axes of its operands, also with its attributes reordered.
bool keeps_axes(const OpDef& op) {
  constexpr std::array<std::string_view, 4> names{"pad", "slice", "reverse", "concat"};
  return op.kind == OpKind::scalar || std::find(names.begin(), names.end(), op.name) != names.end();
}

class Rewriter {
 public:
  explicit Rewriter(const Graph& graph) : graph_(graph), out_(graph) {}

  Graph run() {
    for (std::int32_t id : out_.needed()) {
      const Node& node = graph_.node(id);
      const Values operands = out_.operands(id);
      if (has_regions(node)) out_.replace(id, emit(out_.data(), *node.op, map_regions(node.attrs, channels_last), operands));
      else if (const auto result = rewritten(node, operands)) out_.replace(id, {in_old_order(*result)});
      else out_.copy(id);
    }
    return out_.finish();
  }

 private:
  std::optional<Reordered> rewritten(const Node& node, const Values& operands) const {
    if (node.op->name == "conv") return convolved(node, operands);
    const auto known = std::find_if(operands.begin(), operands.end(), [&](const Value& v) { return known_.count(v.id()) > 0; });
    if (known == operands.end()) return std::nullopt;
    const Ints& order = known_.at(known->id()).order;
    if (keeps_axes(*node.op)) return Reordered{applied(node, operands, order), order};
    if (node.op->name == "reduce") return Reordered{applied(node, operands, order), without(order, axes_of(node))};
    if (node.op->name == "window") return Reordered{applied(node, operands, order), with_two_of(order, axes_of(node)[0])};
    if (node.op->name == "fold")
      if (const auto folded = with_one_of(order, axes_of(node)[0])) return Reordered{applied(node, operands, order), *folded};
    return std::nullopt;
  }

  /// The axes that an op names.
  static Ints axes_of(const Node& node) {
    for (std::size_t i = 0; i < node.attrs.size(); ++i) {
      if (node.op->fields[i].role == Role::axis) return {std::get<std::int64_t>(node.attrs[i])};
      if (node.op->fields[i].role == Role::axes) return std::get<Ints>(node.attrs[i]);
    }
    return {};
  }

  Value applied(const Node& node, const Values& operands, const Ints& order) const {
    Values stored;
    for (const Value& v : operands) stored.push_back(in_order(v, order));
    Attrs attrs;
    for (std::size_t i = 0; i < node.attrs.size(); ++i) attrs.push_back(reordered(node.op->fields[i], node.attrs[i], order));
    return apply(*node.op, attrs, stored)[0];
  }

  /// What a value is an order of.
  Value in_order(const Value& v, const Ints& order) const {
    const auto known = known_.find(v.id());
    return known != known_.end() && known->second.order == order ? known->second.stored : transpose(v, inverse(order));
  }

  std::optional<Reordered> convolved(const Node& conv, const Values& operands) const {
    const bool wide = conv.results[0].dtype == f32 || conv.results[0].dtype == f64;
    if (!wide || narrow_values(operands) || conv_form(conv.attrs, operands[0].type(), operands[1].type()) == ConvForm::loop)
      return std::nullopt;
    ConvOptions op = conv_options(conv.attrs);
    Value x = operands[0];
    if (const auto known = known_.find(x.id()); known != known_.end()) {
      x = known->second.stored;
      for (std::int64_t& axis : op.lhs_spec) axis = known->second.order[at(axis)];
    }
    const Ints old_spec = op.out_spec;
    std::iota(op.out_spec.begin() + 1, op.out_spec.end(), 0);
    op.out_spec[0] = 0, op.out_spec[1] = static_cast<std::int64_t>(op.out_spec.size()) - 1;
    Ints order(old_spec.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[at(old_spec[i])] = op.out_spec[i];
    return Reordered{conv_general(x, operands[1], op), order};
  }

  Value in_old_order(const Reordered& result) {
    const Value v = transpose(result.stored, result.order);
    if (!(v.id() == result.stored.id())) known_[v.id()] = result;
    return v;
  }

  const Graph& graph_;
  Rebuilder out_;
  std::map<ValueId, Reordered> known_;  // by what stands for them in the new graph
};

}  // namespace

Graph channels_last(const Graph& graph) { return may_have_convs(graph) ? Rewriter(graph).run() : graph; }

}  // namespace rlx
