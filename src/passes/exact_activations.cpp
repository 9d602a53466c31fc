#include "passes/exact_activations.h"

#include "ir/op.h"
#include "ir/rebuild.h"

namespace rlx {

Graph with_exact_activations(const Graph& graph) {
  Rebuilder out(graph);
  for (std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    Attrs attrs = map_regions(node.attrs, with_exact_activations);
    for (std::size_t i = 0; i < attrs.size(); ++i)
      if (node.op->fields[i].name == "int8") attrs[i] = false;
    out.replace(id, emit(out.data(), *node.op, attrs, out.operands(id)));
  }
  return out.finish();
}

}  // namespace rlx
