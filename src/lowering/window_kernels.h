#pragma once
#include "kernel/pull.h"
#include "lowering/state_update.h"

namespace rlx {

/// Whether kernels can update the state: each window is a value of its own. Of many windows in one value the last to come counts, and
/// kernels compute them in any order.
bool has_window_kernels(const StateUpdate& update);

/// A kernel for each window, in their order: it computes the window and stores it where it belongs in the state.
std::vector<Kernel> window_kernels(const Graph& graph, const StateUpdate& update, const Puller::IsStored& is_stored);

}  // namespace rlx
