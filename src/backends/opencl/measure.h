#pragma once
#include "backends/backend.h"
#include "backends/opencl/device.h"

namespace rlx::opencl {

/// What kernels of a device reach at best, in about a second.
DeviceFigures measure(const DeviceFacts& device, DeviceMemory& memory);

}  // namespace rlx::opencl
