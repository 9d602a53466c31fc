#include "backends/cpu/quantized/claim.h"

#include <algorithm>

#include "backends/cpu/machine/level_of.h"
#include "backends/cpu/quantized/step.h"
#include "backends/cpu/quantized/wide_dot.h"
#include "ir/op.h"
#include "lowering/attributes.h"
#include "lowering/slots.h"

namespace rlx::cpu {

template <class Way>
void list_parts(Way& way, Of<Way, BlockDot>& dot) {
  way("node", dot.node), way("x", dot.x), way("blocks", dot.blocks), way("experts", dot.experts), way("block type", dot.type);
  way("rows", dot.rows), way("columns", dot.columns), way("depth", dot.depth), way("matrices", dot.matrices), way("packed", dot.packed);
  way("weight bytes", dot.weight_bytes);
}

template <class Way>
void list_parts(Way& way, Of<Way, PackedBlocks>& blocks) {
  way("block type", blocks.type), way("row bytes", blocks.row_bytes), way("matrices", blocks.matrices), way("columns", blocks.n);
  way("depth", blocks.k);
}

namespace {

const RegisterWork<BlockDot> block_dot_work("block_dot");
const RegisterWork<PackedBlocks> packed_blocks_work("packed_blocks");

bool takes(const Graph& graph, const Node& node) {
  if (node.op->name != "block_dot" && node.op->name != "grouped_block_dot") return false;
  const Type &x = graph.type(node.operands[0]), &blocks = graph.type(node.operands[1]);
  const auto is_static = [](const Dim& dim) { return dim.is_static() && dim.value() > 0; };
  const bool has_kernel = attribute<bool>(node, "int8") || has_wide_panels(attribute<std::string>(node, "type"));
  const bool fits =
      has_kernel && x.dtype == f32 && is_static(x.shape.back()) && std::all_of(blocks.shape.begin(), blocks.shape.end(), is_static);
  if (node.operands.size() < 3) return fits;
  const DType experts = graph.type(node.operands[2]).dtype;
  return fits && (experts == i32 || experts == i64);
}

BlockDot as_block_dot(const Graph& graph, ValueId node) {
  const Node& op = graph.node(node.node);
  const Dims &x = graph.type(op.operands[0]).shape, &blocks = graph.type(op.operands[1]).shape;
  const bool grouped = op.operands.size() > 2;
  Dim rows = 1;
  for (std::size_t axis = 0; axis + 1 < x.size(); ++axis) rows = rows * x[axis];
  return {.node = node,
          .x = op.operands[0],
          .blocks = op.operands[1],
          .experts = grouped ? std::optional(op.operands[2]) : std::nullopt,
          .type = attribute<std::string>(op, "type"),
          .rows = rows,
          .columns = blocks[grouped ? 1 : 0],
          .depth = x.back(),
          .matrices = grouped ? blocks[0] : Dim(1),
          .packed = std::nullopt,
          .weight_bytes = most_bytes(graph.type(op.operands[1]))};
}

class BlockDots final : public GraphClaim {
 public:
  explicit BlockDots(Draft& draft) : draft_(draft) {}

  std::optional<Launch> launch(ValueId value) override {
    if (!takes(draft_.graph, draft_.graph.node(value.node))) return std::nullopt;
    BlockDot dot = as_block_dot(draft_.graph, value);
    std::vector<ValueId> reads{dot.x};
    pack_blocks(dot, reads);
    if (dot.experts) reads.push_back(*dot.experts);
    const std::string claim = (dot.experts ? "grouped_block_dot " : "block_dot ") + dot.type;
    Launch launch = launch_with(claim, value, std::move(reads), {value}, dot);
    launch.arithmetic = dot.kernel(level_of(draft_.target)) ? "int8" : "f32";
    return launch;
  }

 private:
  /// The blocks are packed once, where they stay; adds what is read of them.
  void pack_blocks(BlockDot& dot, std::vector<ValueId>& reads) {
    if (!draft_.may_stay(dot.blocks) || !draft_.is_of_runs(dot.node)) return reads.push_back(dot.blocks);
    auto packing = std::make_shared<const WorkOf<PackedBlocks>>(dot.packing(draft_.graph));
    dot.weight_bytes = packing->what.bytes(level_of(draft_.target));
    dot.packed = draft_.pack(dot.blocks, dot.node, Type{u8, {dot.weight_bytes}}, std::move(packing), reads);
  }

  Draft& draft_;
};

struct BlockDotClaim final : Claim {
  bool takes(const Graph& graph, const Node& node, const Caps& /*caps*/) const override { return cpu::takes(graph, node); }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override { return std::make_unique<BlockDots>(draft); }
};

}  // namespace

const Claim& block_dot_claim() {
  static const BlockDotClaim claim;
  return claim;
}

double BlockDot::flops(const Graph& /*graph*/, const Bindings& bindings) const {
  return static_cast<double>((rows * columns * depth * 2).evaluate(bindings));
}

double BlockDot::unread_bytes(const Graph& /*graph*/, const Bindings& bindings) const {
  const double read = static_cast<double>(rows.evaluate(bindings)) / static_cast<double>(matrices.value());
  return std::max(0.0, 1 - read) * static_cast<double>(weight_bytes);
}

PackedBlocks BlockDot::packing(const Graph& graph) const {
  return {type, graph.type(blocks).shape.back().value(), matrices.value(), columns.value(), depth.value()};
}

}  // namespace rlx::cpu
