#include "lowering/kernels_only/interleaved_blocks.h"

#include <utility>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "lowering/kernels_only/block_values.h"
#include "ops/quant/eight_bits.h"
#include "passes/run_invariant.h"

namespace rlx {
namespace {

bool is_product(const Node& node) { return node.op->name == "block_dot" || node.op->name == "grouped_block_dot"; }
bool rounds(const Node& node) { return is_product(node) && std::get<bool>(node.attrs[1]); }

/// x rounded to 8 bits, in a form in which the codes can be stored.
Value coded(Value x) {
  const EightBits parts = EightBits::of(x);
  return reshape(cast(cast(parts.codes, i8), x.dtype()) * parts.scales, x.shape());
}

class Interleaver {
 public:
  Interleaver(const Graph& graph, int width) : graph_(graph), out_(graph), width_(width) {}

  BlockGraph run() {
    find_weights();
    BlockGraph result{graph_, {}};
    for (const std::int32_t id : out_.needed()) {
      const Node& node = graph_.node(id);
      if (reads_blocks(node)) add_tables(std::get<std::string>(node.attrs[0]), result.tables);
      if (is_product(node) && (weights_.contains(node.operands[1]) || rounds(node)))
        out_.replace(id, {product(node, out_.operands(id), result.interleaved)});
      else if (node.op->address) out_.copy(id, reading(node, out_.operands(id), result.interleaved));
      else out_.copy(id);
    }
    result.graph = out_.finish();
    return result;
  }

 private:
  /// Weights as those that read them see them; where they lie is behind both.
  struct Views {
    Value padded, whole;  // with rows behind the last one, so that vectors are full; as they came
  };

  void find_weights() {
    const std::vector<bool> invariant = run_invariant_nodes(graph_);
    for (const std::int32_t id : out_.needed())
      if (const Node& node = graph_.node(id); is_product(node) && width_ > 1 && invariant[static_cast<std::size_t>(node.operands[1].node)])
        weights_.insert(node.operands[1]);
  }

  void add_tables(const std::string& type, std::map<const void*, ValueId>& tables) const {
    for (const BlockTable& table : block_tables(type)) {
      if (tables.contains(table.place)) continue;
      Array entries(u16, {std::ssize(table.entries)});
      for (std::int64_t i = 0; i < entries.size(); ++i) entries.set_int(i, table.entries[static_cast<std::size_t>(i)]);
      tables.emplace(table.place, make_constant(out_.data(), std::move(entries)).id());
    }
  }

  /// Of weights (..., rows, bytes), which lie as (..., groups of rows, bytes, rows of a group).
  const Views& views(ValueId weights, std::set<ValueId>& interleaved) {
    if (const auto known = views_.find(weights); known != views_.end()) return known->second;
    const Value blocks = out_.value(weights);
    const std::int64_t rows = blocks.dim(-2).value(), bytes = blocks.dim(-1).value(), missing = (width_ - rows % width_) % width_;
    const auto rank = static_cast<std::size_t>(blocks.rank());
    const Dims none(rank, 0);
    Dims behind = none;
    behind[rank - 2] = missing;
    const Value padded = pad(blocks, none, behind);
    Dims grouped(padded.shape().begin(), padded.shape().end() - 2);
    grouped.insert(grouped.end(), {Dim((rows + missing) / width_), Dim(width_), Dim(bytes)});
    std::vector<std::int64_t> order;
    for (std::size_t axis = 0; axis <= rank; ++axis) order.push_back(static_cast<std::int64_t>(axis));
    std::swap(order[rank - 1], order[rank]);
    const Value side_by_side = transpose(reshape(padded, grouped), order);
    interleaved.insert(side_by_side.id());
    const Value view = reshape(transpose(side_by_side, order), padded.shape());
    return views_[weights] = {view, slice_axis(view, -2, 0, rows)};
  }

  Value product(const Node& node, Values operands, std::set<ValueId>& interleaved) {
    const Dim rows = operands[1].dim(-2);
    const DType dtype = operands[0].dtype();
    Attrs attrs = node.attrs;
    if (rounds(node)) operands[0] = coded(widen(operands[0])), attrs[1] = false;
    if (weights_.contains(node.operands[1])) operands[1] = views(node.operands[1], interleaved).padded;
    return slice_axis(cast(emit(out_.data(), *node.op, attrs, operands)[0], dtype), -1, 0, rows);
  }
  /// The operands of a node that reads a few rows, such as those of the tokens at hand: the weights need not lie there twice.
  Values reading(const Node& node, Values operands, std::set<ValueId>& interleaved) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (weights_.contains(node.operands[i])) operands[i] = views(node.operands[i], interleaved).whole;
    return operands;
  }

  const Graph& graph_;
  Rebuilder out_;
  int width_;
  std::set<ValueId> weights_;
  std::map<ValueId, Views> views_;
};

}  // namespace

std::optional<CodedOperand> coded_operand(const Graph& graph, ValueId x) {
  const auto inside = [&](ValueId v, std::string_view op) -> std::optional<ValueId> {
    const Node& node = graph.node(v.node);
    return node.op->name == op ? std::optional(node.operands[0]) : std::nullopt;
  };
  const auto product = inside(x, "reshape");
  if (!product || !inside(*product, "mul")) return std::nullopt;
  const auto& factors = graph.node(product->node).operands;
  const auto codes = inside(factors[0], "cast"), scales = inside(factors[1], "broadcast");
  if (!codes || !scales || graph.type(*codes).dtype != i8) return std::nullopt;
  Dims one_a_group = graph.type(*codes).shape;
  if (!(std::exchange(one_a_group.back(), 1) == Dim(EightBits::group)) || graph.type(*scales).shape != one_a_group) return std::nullopt;
  ValueId rounded = *codes;
  for (const std::string_view op : {"cast", "round", "mul"}) rounded = inside(rounded, op).value_or(rounded);
  while (graph.node(rounded.node).op->sources && graph.node(rounded.node).operands.size() == 1)
    rounded = graph.node(rounded.node).operands[0];
  return CodedOperand{*codes, *scales, rounded};
}

bool reads_blocks(const Node& node) { return is_product(node) || node.op->name == "decode_blocks"; }

BlockGraph with_interleaved_blocks(const Graph& graph, int width) { return Interleaver(graph, width).run(); }

}  // namespace rlx
