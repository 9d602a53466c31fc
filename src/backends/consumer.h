#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "passes/expand.h"
#include "rlx/graph.h"

namespace rlx {

/// What devices that take whole graphs share: tables of ops, and the order of a graph's nodes.

/// What such a device makes of one op. `Rule` is a function of the device's own.
template <class Rule>
struct Row {
  std::string_view op;
  Rule rule = nullptr;                                 // null: the host computes it; or its expansion, where there is no reason, either
  bool (*takes)(const Graph&, const Node&) = nullptr;  // which nodes; null: all
  std::string_view reason = {};                        // why the host computes the others
};

/// The table of a device: a row for every primitive, and for the composites that it computes whole.
template <class Rule>
class RowTable {
 public:
  void add(std::span<const Row<Rule>> rows) {
    for (const Row<Rule>& row : rows)
      if (!rows_.emplace(row.op, row).second) fail_internal("rows: {} has two", row.op);
  }
  const Row<Rule>* find(std::string_view op) const {
    const auto it = rows_.find(op);
    return it == rows_.end() ? nullptr : &it->second;
  }
  /// The row by which the device computes a node; null: the host does.
  const Row<Rule>* taking(const Graph& graph, const Node& node) const;

 private:
  std::map<std::string_view, Row<Rule>> rows_;
};

template <class Rule>
const Row<Rule>* RowTable<Rule>::taking(const Graph& graph, const Node& node) const {
  const Row<Rule>* const row = find(node.op->name);
  return row && row->rule && (!row->takes || row->takes(graph, node)) ? row : nullptr;
}

/// A node for which a row makes something. Attributes are found by name.
struct NodeView {
  const Graph& graph;
  const Node& node;
  const Bindings& bindings;  // sizes of symbols

  template <class T>
  const T& attr(std::string_view name) const {
    return std::get<T>(attribute(name));
  }
  bool flag(std::string_view name) const { return attr<bool>(name); }
  std::string_view word(std::string_view name) const { return attr<std::string>(name); }
  std::int64_t number(std::string_view name) const { return attr<std::int64_t>(name); }
  /// A list of numbers or of sizes.
  std::vector<std::int64_t> numbers(std::string_view name) const;
  /// An axis of operand 0, from 0 on.
  std::int64_t axis() const;
  DType type(std::size_t operand) const { return graph.type(node.operands[operand]).dtype; }
  DType result_type(std::size_t result = 0) const { return node.results[result].dtype; }
  std::vector<std::int64_t> sizes(std::size_t result = 0) const;

 private:
  const Attr& attribute(std::string_view name) const;
};

/// The sizes of a shape where symbols have those of `bindings`.
std::vector<std::int64_t> sizes_of(const Dims& shape, const Bindings& bindings);

/// The nodes of a graph that its outputs need, as a run visits them.
struct NodeOrder {
  struct Step {
    std::int32_t node;
    bool kept;                       // the same in every run: it follows from parameters and constants alone
    std::vector<std::int32_t> ends;  // nodes whose values nothing reads behind this one
  };
  std::vector<Step> steps;           // no inputs
  std::vector<bool> kept;            // by node: such steps, and parameters
  std::vector<ValueId> kept_values;  // those that other steps and outputs read
};

/// `region`: nothing is kept, as any input may differ from run to run.
NodeOrder order_nodes(const Graph& graph, bool region);

/// Neighbours in the order of a run that a device can compute as one; or a single step that it cannot join.
struct Segment {
  std::vector<std::size_t> steps;  // of the order; none that is kept
  bool joined = false;
  std::vector<ValueId> reads, writes;  // from outside, but what is kept; and what is read outside
};

/// `joins`: by step.
std::vector<Segment> cut_segments(const Graph& graph, const NodeOrder& order, const std::vector<bool>& joins);

/// From values to values, as inputs in0, in1, ... and outputs out0, out1, ..., with the nodes between, and the parameters under their
/// names.
Graph part_of(const Graph& graph, std::span<const ValueId> reads, std::span<const ValueId> writes);

}  // namespace rlx
