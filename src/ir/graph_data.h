#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <unordered_map>

#include "rlx/graph.h"

namespace rlx {

/// Where values find their graph. A home outlives its graphs, one after the other, and counts them: so a value, which is a plain handle,
/// can tell that its graph is gone.
struct GraphHome {
  std::atomic<std::uint32_t> serial = 0;  // of the graph that lives here now
  GraphData* graph = nullptr;
};

/// Where a node comes from, for those who look at a program: nothing is computed by it.
struct NodeOrigin {
  const OpDef* composite = nullptr;  // the op whose body it is part of, the outermost
  bool backward = false;             // made by a derivative in reverse
};

/// The table behind Graph. Nodes are never changed or removed; a pass builds a new table.
struct GraphData {
  GraphData();
  ~GraphData();
  GraphData(const GraphData&) = delete;
  GraphData& operator=(const GraphData&) = delete;

  std::string name;
  std::deque<Node> nodes;                                      // a deque keeps references valid while it grows
  std::unordered_multimap<std::size_t, std::int32_t> by_hash;  // for hash-consing
  std::vector<std::pair<Input, Value>> inputs;
  std::vector<std::pair<std::string, Value>> outputs;

  GraphHome* home;
  GraphData* parent = nullptr;                             // of a region
  Values captures;                                         // values of enclosing graphs
  std::map<std::pair<GraphData*, ValueId>, Value> lifted;  // captured value -> the input that stands for it

  std::vector<NodeOrigin> origins;  // by node, of the first ones: see note_origins

  NodeOrigin origin(std::int32_t id) const {
    return static_cast<std::size_t>(id) < origins.size() ? origins[static_cast<std::size_t>(id)] : NodeOrigin{};
  }
  /// Says where the nodes come from that were made since the last call.
  void note_origins(NodeOrigin origin) { origins.resize(nodes.size(), origin); }
  const Node& node(std::int32_t id) const { return nodes[static_cast<std::size_t>(id)]; }
  const Type& type(ValueId id) const { return node(id.node).results[static_cast<std::size_t>(id.result)]; }
};

}  // namespace rlx
