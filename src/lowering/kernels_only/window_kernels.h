#pragma once
#include "kernel/pull.h"
#include "lowering/state_update.h"

namespace rlx {

/// Whether kernels, which compute elements in any order, can update the state: not where windows of one value overlap in part.
bool has_window_kernels(const Graph& graph, const StateUpdate& update);

/// A kernel for each window, or for many in one value, in their order: it computes them and stores them where they belong in the state.
std::vector<Kernel> window_kernels(const Graph& graph, const StateUpdate& update, const Puller::IsStored& is_stored);

}  // namespace rlx
