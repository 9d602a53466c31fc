#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace rlx::opencl {

struct DeviceFacts;

/// The devices that the drivers of this machine offer, found once.
const std::vector<const Backend*>& backends();
/// One as its driver describes it, or as if it could do less.
std::unique_ptr<Backend> backend_of(DeviceFacts facts);
/// What programs are made for on one with f64 that is no CPU, also where there is none.
TargetDevice usual_target();
/// Why there are none, and what to install; empty where there are some.
const std::string& missing();

}  // namespace rlx::opencl
