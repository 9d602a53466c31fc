#include "lowering/products/product_axes.h"

#include <algorithm>

namespace rlx {
namespace {

using At = std::vector<Index>;

std::vector<Type> operand_types(const Graph& graph, const Node& node) {
  std::vector<Type> types;
  for (ValueId id : node.operands) types.push_back(graph.type(id));
  return types;
}

int variable_of(const Index& index) { return index.terms().empty() ? -1 : index.terms()[0].atom->id; }

/// True for a structure op that reads each element from one place, whatever its value.
bool moves_elements(const Graph& graph, const Node& node) {
  if (!node.op->sources || node.operands.size() != 1) return false;
  Kernel scratch;
  const At at = element_variables(scratch, node.results[0].shape);
  const auto sources = node.op->sources(node.attrs, operand_types(graph, node), node.results[0], at);
  return sources.size() == 1 && sources[0].guards.empty() && sources[0].operand == 0;
}

}  // namespace

bool merges(const ProductAxis& outer, const ProductAxis& inner, std::span<const Stride> strides) {
  return std::all_of(strides.begin(), strides.end(), [&](Stride s) { return outer.*s == inner.*s * inner.extent; });
}

void merge_axes(std::vector<ProductAxis> axes, ProductAxis& single, std::vector<ProductAxis>& rest) {
  if (axes.empty()) return;
  single = axes.back();
  axes.pop_back();
  while (!axes.empty() && merges(axes.back(), single)) {
    single.extent = axes.back().extent * single.extent;
    axes.pop_back();
  }
  rest.insert(rest.end(), axes.begin(), axes.end());
}

DotReading read_dot(const Graph& graph, ValueId dot, const Puller::IsStored& is_stored) {
  const Node& node = graph.node(dot.node);
  DotReading r;
  const FreshVariable fresh = [&](const Dim& extent) { return Index::variable(r.kernel.add_variable(extent), extent); };
  const At at = element_variables(r.kernel, graph.type(dot).shape);
  for (const Index& i : at) r.axis_variables.push_back(variable_of(i));
  const Loop loop = node.op->loop(node.attrs, operand_types(graph, node), graph.type(dot), at, fresh);
  for (const Index& i : loop.variables)
    if (variable_of(i) >= 0) r.depth_variables.push_back(variable_of(i));
  Puller puller(graph, r.kernel, is_stored);
  for (std::size_t side = 0; side < 2; ++side) r.factors[side] = puller.pull(node.operands[side], loop.factors[side][0].index);
  return r;
}

std::optional<View> view_of(const DotReading& r, std::size_t side, bool is_narrow) {
  const ExprId factor = r.factors[side];
  return as_view(r.kernel, is_narrow ? r.kernel.expr(factor).args.at(0) : factor);
}

ProductAxes axes_of(const Type& result, const DotReading& r, const View& a, const View& b) {
  ProductAxes axes;
  Dim c_stride = 1;
  for (std::size_t i = result.shape.size(); i-- > 0;) {
    const int v = r.axis_variables[i];
    if (v < 0) continue;
    const ProductAxis axis{result.shape[i], a.stride(v), b.stride(v), c_stride};
    const bool in_a = !(axis.a_stride == Dim(0)), in_b = !(axis.b_stride == Dim(0));
    auto& list = in_a && in_b ? axes.batch : in_b ? axes.columns : axes.rows;
    list.insert(list.begin(), axis);
    c_stride = c_stride * result.shape[i];
  }
  for (int v : r.depth_variables) axes.depth.push_back({r.kernel.extent(v), a.stride(v), b.stride(v), 0});
  return axes;
}

std::optional<NarrowOperands> widened_operands(const Graph& graph, ValueId dot, DType element, bool widens_left) {
  const std::vector<ValueId>& operands = graph.node(dot.node).operands;
  NarrowOperands narrow{element, widens_left, {operands[0], {}}, {}};
  for (std::size_t side = widens_left ? 0 : 1; side < operands.size(); ++side) {
    ValueId value = operands[side];
    for (; moves_elements(graph, graph.node(value.node)); value = graph.node(value.node).operands[0]) narrow.widened.insert(value);
    const Node& node = graph.node(value.node);
    if (node.op->name != "cast" || graph.type(node.operands[0]).dtype != element) return std::nullopt;
    narrow.widened.insert(value);
    narrow.values[side] = node.operands[0];
  }
  return narrow;
}

}  // namespace rlx
