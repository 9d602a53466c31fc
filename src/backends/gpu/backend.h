#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace rlx::gpu {

struct DeviceFacts;

/// The devices that CUDA's driver and HIP offer, found once.
const std::vector<const Backend*>& backends();
/// One as its driver describes it, or as if it could do less.
std::unique_ptr<Backend> backend_of(DeviceFacts facts);
/// What programs are made for on one of a kind, "cuda" or "rocm", also where there is none.
TargetDevice usual_target(std::string_view kind);
/// For each vendor of whom there are none, why, and what to install.
const std::vector<std::string>& missing();

}  // namespace rlx::gpu
