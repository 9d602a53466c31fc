#pragma once
#include <string>
#include <vector>

#include "backends/backend.h"

namespace rlx::opencl {

/// The devices that the drivers of this machine offer, found once.
const std::vector<const Backend*>& backends();
/// Why there are none, and what to install; empty where there are some.
const std::string& missing();

}  // namespace rlx::opencl
