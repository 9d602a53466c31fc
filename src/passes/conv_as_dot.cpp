#include "passes/conv_as_dot.h"

#include "ir/rebuild.h"
#include "ops/convolution.h"

namespace rlx {
namespace {

bool has_work(const Graph& graph) {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id)
    if (graph.node(id).op->name == "conv" || has_regions(graph.node(id))) return true;
  return false;
}

}  // namespace

Graph convs_as_dots(const Graph& graph) {
  if (!has_work(graph)) return graph;
  Rebuilder out(graph);
  for (std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    const Values operands = out.operands(id);
    std::optional<Value> product;
    if (node.op->name == "conv" && is_float(node.results[0].dtype)) product = conv_as_dot(node.attrs, operands[0], operands[1]);
    if (product) out.replace(id, {*product});
    else if (has_regions(node)) out.replace(id, emit(out.data(), *node.op, map_regions(node.attrs, convs_as_dots), operands));
    else out.copy(id);
  }
  return out.finish();
}

}  // namespace rlx
