#include "lowering/state_update.h"

#include <algorithm>
#include <optional>

#include "ir/op.h"
#include "lowering/attributes.h"

namespace rlx {
namespace {

/// Whether one node reads the value, and the caller does not.
bool has_one_reader(const Graph& graph, ValueId value, const std::map<ValueId, std::vector<std::int32_t>>& users) {
  const auto found = users.find(value);
  return found != users.end() && found->second.size() == 1 &&
         std::ranges::none_of(graph.outputs(), [&](const auto& output) { return output.second.id() == value; });
}

/// The windows of a scatter, where their elements lie side by side; nothing for one that combines or drops.
std::optional<StateUpdate::Windows> scattered(const Graph& graph, const Node& node) {
  using Ints = std::vector<std::int64_t>;
  if (attribute<std::string>(node, "op") != "set" || attribute<std::string>(node, "mode") != "clip" ||
      !attribute<Ints>(node, "operand_batching_dims").empty() || graph.type(node.operands[1]).shape.size() != 2)
    return std::nullopt;
  const Ints& inside = attribute<Ints>(node, "offset_dims");
  for (std::size_t i = 0; i < inside.size(); ++i)
    if (inside[i] != static_cast<std::int64_t>(i) + 1) return std::nullopt;
  return StateUpdate::Windows{node.operands[2], node.operands[1], attribute<Ints>(node, "start_index_map"),
                              attribute<Ints>(node, "collapsed_slice_dims")};
}

/// Walks from the state's next value back to the state.
std::optional<StateUpdate> update_of(const Graph& graph, ValueId state, ValueId next,
                                     const std::map<ValueId, std::vector<std::int32_t>>& users) {
  StateUpdate update{state, next, {}, {}};
  for (ValueId value = next; !(value == state);) {
    const Node& node = graph.node(value.node);
    const bool scatters = node.op->name == "scatter";
    if ((node.op->name != "dynamic_update" && !scatters) || !has_one_reader(graph, node.operands[0], users)) return std::nullopt;
    update.chain.push_back(value);
    if (!scatters) update.windows.emplace_back(StateUpdate::Window{node.operands[1], {node.operands.begin() + 2, node.operands.end()}});
    else if (auto windows = scattered(graph, node)) update.windows.emplace_back(std::move(*windows));
    else return std::nullopt;
    value = node.operands[0];
  }
  std::ranges::reverse(update.windows);
  return update.windows.empty() ? std::nullopt : std::optional(std::move(update));
}

class StateUpdates final : public GraphClaim {
 public:
  explicit StateUpdates(std::function<Launch(const StateUpdate&)> launch) : launch_(std::move(launch)) {}

  void take(Draft& draft, StateUpdate update) {
    for (ValueId operand : update.operands()) draft.cut.store(operand);
    draft.cut.store(update.result);
    draft.views[update.result] = update.state;
    draft.inside.insert(update.chain.begin() + 1, update.chain.end());  // behind the result, which it begins with
    updates_.emplace(update.result, std::move(update));
  }
  std::optional<Launch> launch(ValueId value) override {
    const auto update = updates_.find(value);
    return update == updates_.end() ? std::nullopt : std::optional(launch_(update->second));
  }

 private:
  std::function<Launch(const StateUpdate&)> launch_;
  std::map<ValueId, StateUpdate> updates_;  // by their results
};

}  // namespace

std::vector<ValueId> StateUpdate::operands() const {
  std::vector<ValueId> all;
  for (const auto& each : windows) {
    if (const auto* many = std::get_if<Windows>(&each)) {
      all.insert(all.end(), {many->value, many->starts});
      continue;
    }
    const auto& one = std::get<Window>(each);
    all.push_back(one.value);
    all.insert(all.end(), one.starts.begin(), one.starts.end());
  }
  return all;
}

std::vector<StateUpdate> state_updates(const Graph& graph, const std::map<ValueId, std::vector<std::int32_t>>& users) {
  std::vector<StateUpdate> updates;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind != InputKind::state || bytes_for(input.type.dtype, 8) % 8 != 0) continue;
    std::vector<ValueId> next;  // an output may have several names
    for (const auto& [name, output] : graph.outputs())
      if (name == input.name) next.push_back(output.id());
    if (next.size() != 1 || !input.type.is_static()) continue;
    const auto named = std::ranges::count_if(graph.outputs(), [&](const auto& output) { return output.second.id() == next[0]; });
    if (auto update = update_of(graph, value.id(), next[0], users); update && named == 1) updates.push_back(std::move(*update));
  }
  return updates;
}

std::unique_ptr<GraphClaim> claim_state_updates(Draft& draft, const std::function<bool(const StateUpdate&)>& takes,
                                                std::function<Launch(const StateUpdate&)> launch) {
  auto claim = std::make_unique<StateUpdates>(std::move(launch));
  for (StateUpdate& update : state_updates(draft.graph, draft.cut.users()))
    if (takes(update)) claim->take(draft, std::move(update));
  return claim;
}

}  // namespace rlx
