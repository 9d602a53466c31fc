#include "passes/expand.h"

#include "ir/op.h"
#include "ir/rebuild.h"

namespace rlx {
namespace {

/// The rule that says what stands for the node; null: it stays.
OpDef::BodyRule replacement(const Graph& graph, const Node& node, const IsClaimed& is_claimed, const IsComputed& is_computed) {
  const bool stays = node.op->kind == OpKind::composite ? is_claimed(graph, node) : !node.op->expansion || is_computed(graph, node);
  return stays ? nullptr : node.op->body ? node.op->body : node.op->expansion;
}

/// One level of bodies; `changed` tells whether there was something to replace.
Graph expand_once(const Graph& graph, const IsClaimed& is_claimed, const IsComputed& is_computed, bool& changed) {
  Rebuilder out(graph);
  for (std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    if (const auto rule = replacement(graph, node, is_claimed, is_computed)) {
      changed = true;
      out.replace(id, rule(node.attrs, out.operands(id)));
    } else {
      out.copy(id);
    }
  }
  return out.finish();
}

/// The regions of control flow ops, expanded like the graph around them.
Graph expand_regions(const Graph& graph, const IsClaimed& is_claimed, const IsComputed& is_computed) {
  Rebuilder out(graph);
  const auto expand_one = [&](const Graph& region) { return expand(region, is_claimed, is_computed); };
  for (std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    out.replace(id, emit(out.data(), *node.op, map_regions(node.attrs, expand_one), out.operands(id)));
  }
  return out.finish();
}

}  // namespace

Graph expand(const Graph& graph, const IsClaimed& is_claimed, const IsComputed& is_computed) {
  bool changed = true;
  Graph result = graph;
  while (changed) {
    changed = false;
    result = expand_once(result, is_claimed, is_computed, changed);
  }
  return expand_regions(result, is_claimed, is_computed);
}

}  // namespace rlx
