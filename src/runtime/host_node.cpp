#include "runtime/host_node.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/rebuild.h"

namespace rlx {

std::optional<Graph> graph_of_node(const Graph& graph, std::int32_t id) {
  const Node& node = graph.node(id);
  Graph single(std::string(node.op->name));
  Values operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const Type& type = graph.type(node.operands[i]);
    operands.push_back(single.input(std::to_string(i), type.shape, type.dtype));
  }
  std::map<std::string, std::int64_t> used;
  for (const Type& type : node.results)
    for (const Dim& dim : type.shape) dim.collect_symbols(used);
  const auto known = single.symbols();
  if (!std::ranges::all_of(used, [&](const auto& symbol) { return known.contains(symbol.first); })) return std::nullopt;
  const Values results = emit(single.data(), *node.op, node.attrs, operands);
  for (std::size_t i = 0; i < results.size(); ++i) single.output(std::to_string(i), results[i]);
  return single;
}

}  // namespace rlx
