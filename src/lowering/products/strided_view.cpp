#include "lowering/products/strided_view.h"

#include <algorithm>

namespace rlx {

Dim View::stride(int variable) const {
  const auto it = strides.find(variable);
  return it == strides.end() ? Dim(0) : it->second;
}

std::optional<View> as_view(const Kernel& kernel, ExprId id) {
  const Expr& e = kernel.expr(id);
  if (e.kind != Expr::Kind::load) return std::nullopt;
  View view{kernel.buffers[static_cast<std::size_t>(e.buffer)].value, e.dtype, e.index.constant(), {}};
  for (const Index::Term& term : e.index.terms()) {
    if (term.atom->kind != Atom::Kind::variable) return std::nullopt;
    view.strides[term.atom->id] = term.coefficient;
  }
  return view;
}

std::vector<Index> element_variables(Kernel& kernel, const Dims& shape) {
  std::vector<Index> at;
  for (const Dim& extent : shape) at.push_back(Index::variable(kernel.add_variable(extent), extent));
  return at;
}

std::optional<std::vector<Index>> follow(const Graph& graph, const Node& node, const std::vector<Index>& at) {
  if (!node.op->sources || node.operands.size() != 1) return std::nullopt;
  const Type &from = graph.type(node.operands[0]), &to = node.results[0];
  if (!(from.size() == to.size())) return std::nullopt;
  std::vector<Type> types;
  for (ValueId id : node.operands) types.push_back(graph.type(id));
  Kernel scratch;
  const std::vector<Index> to_at = element_variables(scratch, to.shape);
  const auto sources = node.op->sources(node.attrs, types, to, to_at);
  if (sources.size() != 1 || !sources[0].guards.empty()) return std::nullopt;
  if (flatten(sources[0].index, from.shape) == flatten(to_at, to.shape)) return unflatten(flatten(at, from.shape), to.shape);
  std::vector<Index> result(to.shape.size(), Index(0));
  std::size_t placed = 0;
  for (std::size_t i = 0; i < from.shape.size(); ++i) {
    const Index& source = sources[0].index[i];
    if (source.is_constant() && from.shape[i] == Dim(1)) continue;
    for (std::size_t j = 0; j < to_at.size(); ++j)
      if (source == to_at[j]) result[j] = at[i], ++placed;
  }
  const auto wide =
      static_cast<std::size_t>(std::count_if(from.shape.begin(), from.shape.end(), [](const Dim& d) { return !(d == Dim(1)); }));
  return placed == wide ? std::optional(result) : std::nullopt;
}

}  // namespace rlx
