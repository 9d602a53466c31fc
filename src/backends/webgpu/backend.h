#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace rlx::webgpu {

struct DeviceFacts;

/// The devices that the library of WebGPU on this machine has, found once.
const std::vector<const Backend*>& backends();
/// One as its driver describes it, or as if it could do less.
std::unique_ptr<Backend> backend_of(DeviceFacts facts);
/// Why there are none, and what to install; empty where there are some.
const std::string& missing();

}  // namespace rlx::webgpu
