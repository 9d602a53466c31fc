#include "passes/expand.h"

#include "ir/op.h"
#include "ir/rebuild.h"

namespace rlx {
namespace {

/// One level of bodies; `changed` tells whether there was a composite to replace.
Graph expand_once(const Graph& graph, const IsClaimed& is_claimed, bool& changed) {
  Rebuilder out(graph);
  for (std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    if (node.op->kind != OpKind::composite || is_claimed(graph, node)) {
      out.copy(id);
    } else {
      changed = true;
      out.replace(id, node.op->body(node.attrs, out.operands(id)));
    }
  }
  return out.finish();
}

/// The regions of control flow ops, expanded like the graph around them.
Graph expand_regions(const Graph& graph, const IsClaimed& is_claimed) {
  Rebuilder out(graph);
  const auto expand_one = [&](const Graph& region) { return expand(region, is_claimed); };
  for (std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    out.replace(id, emit(out.data(), *node.op, map_regions(node.attrs, expand_one), out.operands(id)));
  }
  return out.finish();
}

}  // namespace

Graph expand(const Graph& graph, const IsClaimed& is_claimed) {
  bool changed = true;
  Graph result = graph;
  while (changed) {
    changed = false;
    result = expand_once(result, is_claimed, changed);
  }
  return expand_regions(result, is_claimed);
}

}  // namespace rlx
