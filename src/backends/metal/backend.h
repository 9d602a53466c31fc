#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace rlx::metal {

struct Gpu;

/// The GPUs that Metal offers, found once.
const std::vector<const Backend*>& backends();
/// Why there are none; empty where there are some.
const std::string& missing();
/// What programs are made for on one, also where there is none.
TargetDevice usual_target();
/// One of them under this name. `gpu` must live as long.
std::unique_ptr<Backend> backend_of(Gpu& gpu, std::string name);

}  // namespace rlx::metal
