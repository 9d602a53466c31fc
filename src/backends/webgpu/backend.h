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
/// What programs are made for on a device of the limits that the standard asks for.
TargetDevice usual_target();
/// Why there are none, and what to install; empty where there are some.
const std::string& missing();

}  // namespace rlx::webgpu
