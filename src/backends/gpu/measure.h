#pragma once
#include "backends/backend.h"
#include "backends/gpu/device.h"

namespace rlx::gpu {

/// What kernels of a device reach at best, in about a second.
DeviceFigures measure(const DeviceFacts& device, DeviceMemory& memory);

}  // namespace rlx::gpu
