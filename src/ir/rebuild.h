#pragma once
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

/// The nodes that `outputs` need, in order, without going beyond `stops` (values that the caller provides itself). Inputs are left out.
std::vector<std::int32_t> needed_nodes(const GraphData& graph, std::span<const ValueId> outputs, std::span<const ValueId> stops = {});

/// The ids of a graph's outputs, in order.
std::vector<ValueId> output_ids(const Graph& graph);

/// The results of an op as a new node: in the innermost graph of the operands, or in `target` when there are none.
Values emit(GraphData& target, const OpDef& op, const Attrs& attrs, std::span<const Value> operands);

/// Writes the needed nodes of `callee` into the graph of the operands and gives the outputs. Operands stand for the inputs, captures
/// included, by position; nodes without operands go to `target`.
Values inline_graph(GraphData& target, const Graph& callee, std::span<const Value> operands);
/// The same where there is at least one operand: its graph is the target.
Values inline_graph(const Graph& callee, std::span<const Value> operands);

/// Builds a changed copy of a graph: one loop over `needed()` that calls `copy` or `replace` for each node, then `finish()`. The
/// inputs keep their names, kinds, types and order; so do the outputs. Nodes that no output needs are dropped.
class Rebuilder {
 public:
  explicit Rebuilder(const Graph& graph);

  /// The nodes to visit, in order; inputs are there already.
  const std::vector<std::int32_t>& needed() const { return needed_; }
  /// What stands for an old value, or for the operands of an old node.
  Value value(ValueId id) const;
  Values operands(std::int32_t node) const;
  /// The graph under construction.
  GraphData& data() const { return result_.data(); }

  void copy(std::int32_t node);
  /// The same op and attributes on other operands.
  void copy(std::int32_t node, std::span<const Value> operands);
  void replace(std::int32_t node, const Values& results);
  Graph finish();

 private:
  const Graph& source_;
  Graph result_;
  std::vector<std::int32_t> needed_;
  std::map<ValueId, Value> values_;
};

/// The attributes with every region replaced by what `rule` makes of it.
Attrs map_regions(const Attrs& attrs, const std::function<Graph(const Graph&)>& rule);
bool has_regions(const Node& node);

/// The graph without the nodes that no output needs.
Graph dead_code_eliminated(const Graph& graph);

}  // namespace rlx
