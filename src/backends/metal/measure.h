#pragma once
#include "backends/backend.h"

namespace rlx::metal {

struct Gpu;

/// What kernels reach at best.
DeviceFigures measure(const Gpu& gpu, DeviceMemory& memory);

}  // namespace rlx::metal
