#pragma once
#include <cstdint>
#include <string_view>

#include "rlx/graph.h"

namespace rlx {

/// The graph with calls of the kernels that programs have registered for the device, see `register_kernel`, in the place of their ops.
Graph with_registered_kernels(const Graph& graph, std::string_view device);

/// How often any was registered or taken back: what was compiled at another number may call others.
std::uint64_t registrations();

}  // namespace rlx
