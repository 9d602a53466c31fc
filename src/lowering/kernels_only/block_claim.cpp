// Claims products with weights in blocks, and their decoding: kernels that read the blocks, which lie side by side for their vectors.
#include <algorithm>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "lowering/kernels_only/block_kernels.h"
#include "lowering/kernels_only/block_values.h"
#include "lowering/kernels_only/kernel_claims.h"

namespace rlx {
namespace {

/// Interleaved weights, which views turn back: see with_interleaved_blocks.
bool is_interleaved(const Graph& graph, ValueId turned) {
  const Node& outer = graph.node(turned.node);
  if (outer.op->name != "transpose") return false;
  const Node& inner = graph.node(outer.operands[0].node);
  return inner.op->name == "transpose" && inner.attrs == outer.attrs;
}

/// What kernels that read blocks load in place of an operand: the weights where they lie, which index maps stand for.
ValueId where_it_lies(const Graph& graph, ValueId v) {
  while (true) {
    const Node& node = graph.node(v.node);
    if (!node.op->sources || node.operands.size() != 1) return v;
    const bool is_found = is_interleaved(graph, v);
    v = node.operands[0];
    if (is_found) return v;
  }
}

bool has_blocks(const Graph& graph) {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id)
    if (reads_blocks(graph.node(id)) || has_regions(graph.node(id))) return true;
  return false;
}

/// The graph, and those of its regions, whose weights may be others in each step.
Graph interleaved(const Graph& graph, int width) {
  if (!has_blocks(graph)) return graph;
  const Graph arranged = with_interleaved_blocks(graph, width).graph;
  Rebuilder out(arranged);
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(arranged.size()); ++id)
    if (constant_value(arranged.node(id))) out.copy(id);  // tables, too, which no node reads
  for (const std::int32_t id : out.needed()) {
    const Node& node = arranged.node(id);
    if (constant_value(node)) continue;
    if (!has_regions(node)) out.copy(id);
    else
      out.replace(id, emit(out.data(), *node.op, map_regions(node.attrs, [](const Graph& region) { return interleaved(region, 1); }),
                           out.operands(id)));
  }
  return out.finish();
}

class Blocks final : public GraphClaim {
 public:
  explicit Blocks(Draft& draft) : draft_(draft), blocks_(block_graph(draft.graph)) {}

  void store_operands() override {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(draft_.graph.size()); ++id)
      if (const Node& node = draft_.graph.node(id); draft_.cut.live(id) && has_block_kernels(draft_.graph, node, draft_.target.caps))
        if (const auto coded = coded_operand(draft_.graph, node.operands[0])) {
          draft_.cut.store(coded->scales);
          // A sum in front of them is computed in loops of its own shape.
          if (draft_.graph.node(coded->rounded.node).op->loop) draft_.cut.store(coded->rounded);
        }
  }

  std::optional<Launch> launch(ValueId value) override {
    if (!has_block_kernels(draft_.graph, draft_.graph.node(value.node), draft_.target.caps)) return std::nullopt;
    Launch launch;
    launch.writes = {value};
    for (BlockKernelOfRows& kernel : block_kernels(blocks_, value.node, draft_.stored_test(), draft_.target.caps)) {
      for (const KernelBuffer& buffer : kernel.kernel.buffers)
        if (!buffer.written && std::ranges::find(launch.reads, buffer.value) == launch.reads.end()) launch.reads.push_back(buffer.value);
      launch.kernels.push_back(draft_.generate(std::move(kernel.kernel)));
      launch.kernels.back().only = std::move(kernel.rows);
    }
    launch.name = launch.kernels[0].short_name();
    return launch;
  }

 private:
  Draft& draft_;
  const BlockGraph blocks_;
};

struct BlockClaim final : Claim {
  bool takes(const Graph& graph, const Node& node, const Caps& caps) const override { return has_block_kernels(graph, node, caps); }
  ValueId read_operand(const Graph& graph, const Node& node, std::size_t operand) const override {
    const ValueId v = node.operands[operand];
    if (graph.type(v).dtype == u8) return where_it_lies(graph, v);
    const auto coded = coded_operand(graph, v);
    return coded ? coded->codes : v;
  }
  Graph prepare(const Graph& graph, const Caps& caps) const override { return interleaved(graph, caps.schedule.vector); }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override { return std::make_unique<Blocks>(draft); }
};

}  // namespace

BlockGraph block_graph(const Graph& graph) {
  BlockGraph found{graph, {}};
  std::set<std::string> types;
  std::vector<std::pair<ValueId, const Array*>> constants;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
    const Node& node = graph.node(id);
    if (is_interleaved(graph, {id, 0})) found.interleaved.insert(node.operands[0]);
    if (reads_blocks(node)) types.insert(std::get<std::string>(node.attrs[0]));
    if (const Array* value = constant_value(node); value && value->dtype() == u16) constants.emplace_back(ValueId{id, 0}, value);
  }
  for (const std::string& type : types)
    for (const BlockTable& table : block_tables(type))
      for (const auto& [id, entries] : constants)
        if (std::ranges::equal(entries->values<std::uint16_t>(), table.entries)) found.tables.emplace(table.place, id);
  return found;
}

const Claim& block_claim() {
  static const BlockClaim claim;
  return claim;
}

}  // namespace rlx
