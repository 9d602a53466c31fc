#include "lowering/kernels_only/interleaved_blocks.h"

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "lowering/kernels_only/block_values.h"
#include "passes/run_invariant.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

bool is_product(const Node& node) { return node.op->name == "block_dot" || node.op->name == "grouped_block_dot"; }

class Interleaver {
 public:
  Interleaver(const Graph& graph, int width) : graph_(graph), out_(graph), invariant_(run_invariant_nodes(graph)), width_(width) {}

  BlockGraph run() {
    BlockGraph result{graph_, {}};
    for (const std::int32_t id : out_.needed()) {
      const Node& node = graph_.node(id);
      if (reads_blocks(node)) add_tables(std::get<std::string>(node.attrs[0]), result.tables);
      if (is_product(node) && width_ > 1 && invariant_[static_cast<std::size_t>(node.operands[1].node)])
        out_.replace(id, {interleaved(node, out_.operands(id), result.interleaved)});
      else out_.copy(id);
    }
    result.graph = out_.finish();
    return result;
  }

 private:
  void add_tables(const std::string& type, std::map<const void*, ValueId>& tables) const {
    for (const BlockTable& table : block_tables(type)) {
      if (tables.contains(table.place)) continue;
      Array entries(u16, {std::ssize(table.entries)});
      for (std::int64_t i = 0; i < entries.size(); ++i) entries.set_int(i, table.entries[static_cast<std::size_t>(i)]);
      tables.emplace(table.place, make_constant(out_.data(), std::move(entries)).id());
    }
  }

  /// The product by rows that are read from where they lie interleaved: (groups of rows, bytes, rows of a group).
  Value interleaved(const Node& node, Values operands, std::set<ValueId>& packed) const {
    Value blocks = operands[1];
    const std::int64_t rows = blocks.dim(-2).value(), bytes = blocks.dim(-1).value(), missing = (width_ - rows % width_) % width_;
    const int rank = blocks.rank();
    const Dims none(static_cast<std::size_t>(rank), 0);
    Dims behind = none;
    behind[static_cast<std::size_t>(rank) - 2] = missing;
    blocks = pad(blocks, none, behind);
    const Dims whole = blocks.shape();
    Dims grouped(whole.begin(), whole.end() - 2);
    grouped.insert(grouped.end(), {Dim((rows + missing) / width_), Dim(width_), Dim(bytes)});
    std::vector<std::int64_t> order;
    for (int axis = 0; axis <= rank; ++axis) order.push_back(axis);
    std::swap(order[static_cast<std::size_t>(rank) - 1], order[static_cast<std::size_t>(rank)]);
    const Value side_by_side = transpose(reshape(blocks, grouped), order);
    packed.insert(side_by_side.id());
    operands[1] = reshape(transpose(side_by_side, order), whole);
    const Value product = emit(out_.data(), *node.op, node.attrs, operands)[0];
    return missing > 0 ? slice_axis(product, -1, 0, rows) : product;
  }

  const Graph& graph_;
  Rebuilder out_;
  std::vector<bool> invariant_;
  int width_;
};

}  // namespace

bool reads_blocks(const Node& node) { return is_product(node) || node.op->name == "decode_blocks"; }

BlockGraph with_interleaved_blocks(const Graph& graph, int width) { return Interleaver(graph, width).run(); }

}  // namespace rlx
