#pragma once
#include <map>
#include <span>
#include <vector>

#include "rlx/graph.h"

namespace rlx::cpu {

/// A state that a run changes where it lies: windows of it are replaced, one after another, and it is read after that only.
struct StateUpdate {
  struct Window {
    ValueId value;
    std::vector<ValueId> starts;  // integers, one for each axis, clamped so that the window fits
  };
  ValueId state, result;  // result: the end of the chain of dynamic_update, an output that is named as the state
  std::vector<ValueId> chain;
  std::vector<Window> windows;
};

/// The states of a graph that can be updated so: those whose next value is a chain of dynamic_update on them, whose older values nobody
/// else reads.
std::vector<StateUpdate> state_updates(const Graph& graph, const std::map<ValueId, std::vector<std::int32_t>>& users);

/// An array in memory.
struct Window {
  const std::byte* bytes;
  std::vector<std::int64_t> shape, starts;
};
/// Writes the window into `to` (shape), elements of `width` bytes; starts are clamped.
void copy_window(const Window& window, std::span<const std::int64_t> shape, std::int64_t width, std::byte* to);

}  // namespace rlx::cpu
