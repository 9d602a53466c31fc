#include "runtime/host_node.h"

#include <algorithm>
#include <set>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/symbols.h"
#include "ops/control/host_call.h"

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
  if (!std::ranges::all_of(used, [&](const auto& symbol) { return follows_from(known, symbol.first); })) return std::nullopt;
  const Values results = emit(single.data(), *node.op, node.attrs, operands);
  for (std::size_t i = 0; i < results.size(); ++i) single.output(std::to_string(i), results[i]);
  return single;
}

std::string host_reason(const Graph& graph, const Node& node, const Caps& caps) {
  if (node.op->name == "host_call") return std::string(host_call_reason);
  std::vector<DType> types;
  for (const ValueId operand : node.operands) types.push_back(graph.type(operand).dtype);
  for (const Type& type : node.results) types.push_back(type.dtype);
  for (const DType type : types)
    if (!caps.has(type)) return fmt::format("its kernels have no {}", name(type));
  for (const DType type : types)
    if (!can_generate(type))
      return fmt::format("kernels have no {}, and `{}` of it does not come apart into numbers that they have", name(type), node.op->name);
  return fmt::format("no kernel computes `{}`", node.op->name);
}

std::map<ValueId, bool> values_of_host(const Program& program, const std::vector<bool>& prepared) {
  std::set<ValueId> written, elsewhere;  // elsewhere: read by the device, or an output
  for (std::size_t i = 0; i < program.launches.size(); ++i)
    if (const Launch& launch = program.launches[i]; launch.kind == Launch::Kind::host && !prepared[i])
      written.insert(launch.writes.begin(), launch.writes.end());
  for (const auto& [name, value] : program.graph.outputs()) elsewhere.insert(program.root(value.id()));
  std::map<ValueId, bool> found;
  for (const Launch& launch : program.launches)
    for (const ValueId v : launch.reads)
      if (launch.kind == Launch::Kind::host && written.contains(v)) found.emplace(v, true);
      else elsewhere.insert(program.root(v));
  for (auto& [value, stays] : found) stays = !elsewhere.contains(value);
  return found;
}

void refuse_host(const Program& program, const Device& device, const Caps& caps) {
  for (const Launch& launch : program.launches)
    if (launch.kind == Launch::Kind::host) {
      const Node& node = program.graph.node(launch.node.node);
      fail("graph '{}': no kernel computes {}, {}, on {}, as {}, and the session leaves nothing to the host", program.graph.name(),
           launch.name, node.results[0].to_string(), device.name(), host_reason(program.graph, node, caps));
    }
  for (const auto& [region, inner] : program.regions) refuse_host(*inner, device, caps);
}

}  // namespace rlx
