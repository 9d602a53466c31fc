#include "passes/run_invariant.h"

#include <algorithm>

#include "ir/rebuild.h"
#include "ir/sources.h"

namespace rlx {
namespace {

bool is_static(const Attr& attr) {
  const auto* dims = std::get_if<Dims>(&attr);
  return !dims || std::all_of(dims->begin(), dims->end(), [](const Dim& d) { return d.is_static(); });
}

bool has_fixed_sizes(const Node& node) {
  return std::all_of(node.results.begin(), node.results.end(), [](const Type& t) { return t.is_static(); }) &&
         std::all_of(node.attrs.begin(), node.attrs.end(), is_static);
}

}  // namespace

std::vector<bool> run_invariant_nodes(const Graph& graph) {
  std::vector<bool> invariant(graph.size(), false);
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
    const Node& node = graph.node(id);
    if (!has_fixed_sizes(node) || has_regions(node)) continue;
    invariant[static_cast<std::size_t>(id)] =
        is_input(node) ? input_from(node.attrs).kind == InputKind::param
                       : std::all_of(node.operands.begin(), node.operands.end(),
                                     [&](ValueId operand) { return invariant[static_cast<std::size_t>(operand.node)]; });
  }
  return invariant;
}

}  // namespace rlx
