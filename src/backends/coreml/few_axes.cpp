#include "backends/coreml/prepared_graph.h"

#include <algorithm>
#include <array>

#include "backends/consumer.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "rlx/ops.h"

namespace rlx::coreml {
namespace {

using Ints = std::vector<std::int64_t>;

bool is_wide(const Type& type) { return type.shape.size() > most_axes; }

/// All axes before the last ones as one.
Dims few(const Dims& shape) {
  if (shape.size() <= most_axes) return shape;
  const auto last = shape.end() - (most_axes - 1);
  Dims folded{product({shape.begin(), last})};
  folded.insert(folded.end(), last, shape.end());
  return folded;
}

/// The axes before one, that one, and those behind it.
Dims around(const Dims& shape, std::size_t axis) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  return {product({shape.begin(), at}), *at, product({at + 1, shape.end()})};
}

/// The attributes of what a node does along one axis, as the middle one of three; nothing where it leaves that as it is.
using OfAxis = std::optional<Attrs> (*)(const NodeView& node, const Dims& three, std::size_t axis);

std::optional<Attrs> slice(const NodeView& c, const Dims& three, std::size_t axis) {
  const Dim &start = c.attr<Dims>("start")[axis], &limit = c.attr<Dims>("limit")[axis], &stride = c.attr<Dims>("stride")[axis];
  if (start == 0 && limit == three[1] && stride == 1) return std::nullopt;
  return Attrs{Dims{0, start, 0}, Dims{three[0], limit, three[2]}, Dims{1, stride, 1}};
}
std::optional<Attrs> pad(const NodeView& c, const Dims& /*three*/, std::size_t axis) {
  const Dim &lo = c.attr<Dims>("lo")[axis], &hi = c.attr<Dims>("hi")[axis], &interior = c.attr<Dims>("interior")[axis];
  if (lo == 0 && hi == 0 && interior == 0) return std::nullopt;
  return Attrs{Dims{0, lo, 0}, Dims{0, hi, 0}, Dims{0, interior, 0}, c.attr<double>("fill")};
}
std::optional<Attrs> broadcast(const NodeView& c, const Dims& three, std::size_t axis) {
  const Dim& wanted = c.node.results[0].shape[axis];
  if (wanted == three[1]) return std::nullopt;
  return Attrs{Dims{three[0], wanted, three[2]}, Ints{0, 1, 2}};
}
/// Of ops with a list of axes, and with one.
std::optional<Attrs> listed(const NodeView& c, const Dims& /*three*/, std::size_t axis) {
  const Ints axes = c.numbers("axes");
  if (std::ranges::find(axes, static_cast<std::int64_t>(axis)) == axes.end()) return std::nullopt;
  Attrs attrs = c.node.attrs;
  attrs.back() = Ints{1};
  return attrs;
}
template <std::size_t place>
std::optional<Attrs> single(const NodeView& c, const Dims& /*three*/, std::size_t axis) {
  if (c.axis() != static_cast<std::int64_t>(axis)) return std::nullopt;
  Attrs attrs = c.node.attrs;
  attrs[place] = std::int64_t{1};
  return attrs;
}

Value along_axes(GraphData& target, const NodeView& c, Value x, Dims shape, OfAxis of_axis) {
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const Dims three = around(shape, axis);
    const std::optional<Attrs> attrs = of_axis(c, three, axis);
    if (!attrs) continue;
    x = emit(target, *c.node.op, *attrs, std::array{reshape(x, three)})[0];
    const Dims made = x.shape();
    const auto at = shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    shape.insert(at, made.begin() + 1, made.end() - 1);
  }
  return reshape(x, few(shape));
}

/// Axes that stay neighbours are one; where that leaves too many, axes go to their places one after the other.
Value transposed(Value x, Dims shape, Ints perm) {
  while (true) {
    Ints firsts;  // of what stays together, as the result has them
    for (std::size_t i = 0; i < perm.size(); ++i)
      if (i == 0 || perm[i] != perm[i - 1] + 1) firsts.push_back(perm[i]);
    if (firsts.size() <= most_axes) {
      Ints sorted = firsts, order;
      std::ranges::sort(sorted);
      for (const std::int64_t first : firsts) order.push_back(std::ranges::find(sorted, first) - sorted.begin());
      sorted.push_back(std::ssize(shape));
      Dims grouped, result;
      for (std::size_t i = 0; i + 1 < sorted.size(); ++i)
        grouped.push_back(product({shape.begin() + sorted[i], shape.begin() + sorted[i + 1]}));
      for (const std::int64_t axis : perm) result.push_back(shape[static_cast<std::size_t>(axis)]);
      return reshape(transpose(reshape(x, grouped), order), few(result));
    }
    std::int64_t to = 0;
    while (perm[static_cast<std::size_t>(to)] == to) ++to;
    const std::int64_t from = perm[static_cast<std::size_t>(to)];
    const auto begin = shape.begin() + to, moved = shape.begin() + from;
    x = transpose(reshape(x, {product({shape.begin(), begin}), product({begin, moved}), *moved, product({moved + 1, shape.end()})}),
                  {0, 2, 1, 3});
    std::rotate(begin, moved, moved + 1);
    for (std::int64_t& axis : perm) axis = axis == from ? to : axis >= to && axis < from ? axis + 1 : axis;
  }
}

/// The result of a node on operands with few axes, with few axes; null: there is no rule.
Value folded(GraphData& target, const NodeView& c, const Values& x) {
  static const std::map<std::string_view, OfAxis> rules{{"slice", slice},     {"pad", pad},       {"broadcast", broadcast},
                                                        {"reverse", listed},  {"reduce", listed}, {"cumulative", single<1>},
                                                        {"window", single<0>}};
  const std::string_view op = c.node.op->name;
  const Dims& wanted = c.node.results[0].shape;
  if (c.node.op->kind == OpKind::scalar && c.node.results.size() == 1) return emit(target, *c.node.op, c.node.attrs, x)[0];
  if (op == "reshape") return reshape(x[0], few(wanted));
  Dims shape = x.empty() ? Dims{} : c.graph.type(c.node.operands[0]).shape;
  if (op == "transpose") return transposed(x[0], shape, c.numbers("perm"));
  if (op == "concat") {
    Values parts;
    for (std::size_t i = 0; i < x.size(); ++i)
      parts.push_back(reshape(x[i], around(c.graph.type(c.node.operands[i]).shape, static_cast<std::size_t>(c.axis()))));
    return reshape(concat(parts, 1), few(wanted));
  }
  if (op == "broadcast") {
    Dims aligned(wanted.size(), 1);
    const Ints axes = c.numbers("axes");
    for (std::size_t i = 0; i < axes.size(); ++i) aligned[static_cast<std::size_t>(axes[i])] = shape[i];
    shape = aligned;
  }
  const auto rule = rules.find(op);
  return rule == rules.end() ? Value() : along_axes(target, c, x[0], shape, rule->second);
}

}  // namespace

bool has_many_axes(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.operands, [&](ValueId v) { return is_wide(graph.type(v)); }) ||
         std::ranges::any_of(node.results, is_wide);
}

Graph with_few_axes(const Graph& graph) {
  Rebuilder out(graph);
  const auto whole = [&](ValueId v) { return reshape(out.value(v), graph.type(v).shape); };
  for (const std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    if (!has_many_axes(graph, node)) {
      out.copy(id);
      continue;
    }
    Values x, all;
    for (const ValueId v : node.operands)
      x.push_back(is_wide(out.value(v).type()) ? reshape(out.value(v), few(out.value(v).shape())) : out.value(v));
    if (const Value made = folded(out.data(), {graph, node, {}}, x)) {
      out.replace(id, {made});
      continue;
    }
    for (const ValueId v : node.operands) all.push_back(whole(v));
    out.copy(id, all);
  }
  for (const auto& [name, output] : graph.outputs())
    if (const ValueId v = output.id(); is_wide(output.type()) && graph.node(v.node).results.size() == 1 && !is_input(graph.node(v.node)))
      out.replace(v.node, {whole(v)});
  return out.finish();
}

}  // namespace rlx::coreml
