#pragma once
#include <map>
#include <variant>
#include <vector>

#include "lowering/claim.h"

namespace rlx {

/// A state that a run changes where it lies: windows of it are replaced, one after another, and it is read after that only.
struct StateUpdate {
  struct Window {
    ValueId value;
    std::vector<ValueId> starts;  // integers, one for each axis, clamped so that the window fits
  };
  /// Many windows in one value (count, window...): all axes of the state in their order, without those of size 1 that are `inserted`.
  struct Windows {
    ValueId value, starts;                     // starts: integers (count, axes), clamped
    std::vector<std::int64_t> axes, inserted;  // axes: of the state, that the starts are of; the others begin at 0
  };
  ValueId state, result;  // result: the end of the chain of dynamic_update and scatter, an output that is named as the state
  std::vector<ValueId> chain;
  std::vector<std::variant<Window, Windows>> windows;

  /// What the windows are read from, window by window: the value, then its starts.
  std::vector<ValueId> operands() const;
};

/// The states of a graph that can be updated so: those whose next value is a chain of dynamic_update, and of scatter that sets windows, on
/// them, whose older values nobody else reads.
std::vector<StateUpdate> state_updates(const Graph& graph, const std::map<ValueId, std::vector<std::int32_t>>& users);

/// Takes the states that are updated so, of those for which `takes` holds: what their windows are read from is stored, and the result of
/// each is a view of its state. `launch` computes one.
std::unique_ptr<GraphClaim> claim_state_updates(Draft& draft, const std::function<bool(const StateUpdate&)>& takes,
                                                std::function<Launch(const StateUpdate&)> launch);

}  // namespace rlx
