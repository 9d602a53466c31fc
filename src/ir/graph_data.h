#pragma once
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "rlx/graph.h"

namespace rlx {

/// The table behind Graph. Nodes are never changed or removed; a pass builds a new table.
struct GraphData : std::enable_shared_from_this<GraphData> {
  std::string name;
  std::deque<Node> nodes;                                      // a deque keeps references valid while it grows
  std::unordered_multimap<std::size_t, std::int32_t> by_hash;  // for hash-consing
  std::vector<std::pair<Input, Value>> inputs;
  std::vector<std::pair<std::string, Value>> outputs;

  GraphData* parent = nullptr;                             // of a region
  Values captures;                                         // values of enclosing graphs
  std::map<std::pair<GraphData*, ValueId>, Value> lifted;  // captured value -> the input that stands for it

  const Node& node(std::int32_t id) const { return nodes[static_cast<std::size_t>(id)]; }
  const Type& type(ValueId id) const { return node(id.node).results[static_cast<std::size_t>(id.result)]; }
};

}  // namespace rlx
