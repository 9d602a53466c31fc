#pragma once
#include <string_view>

#include "rlx/host_call.h"

namespace rlx {

/// The graph with calls of the kernels that programs have registered for the device, see `register_kernel`, in the place of their ops.
Graph with_registered_kernels(const Graph& graph, std::string_view device);

/// `register_kernel` without a look at the device.
void keep_kernel(std::string_view op, std::string_view device, HostKernel kernel);

}  // namespace rlx
