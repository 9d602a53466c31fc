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

void refuse_host(const Program& program, const Device& device) {
  for (const Launch& launch : program.launches)
    if (launch.kind == Launch::Kind::host) {
      const Type& type = program.graph.node(launch.node.node).results[0];
      fail("graph '{}': no kernel computes {}, {}, on {}, and the session leaves nothing to the host", program.graph.name(), launch.name,
           type.to_string(), device.name());
    }
  for (const auto& [region, inner] : program.regions) refuse_host(*inner, device);
}

}  // namespace rlx
