#pragma once
#include "backends/backend.h"
#include "backends/cpu/machine/cpu_features.h"

namespace rlx::cpu {

/// This machine's CPU.
const Backend& backend();

/// This CPU with the instructions of a level.
TargetDevice target_of(CpuLevel level = cpu_level());
inline CpuLevel level_of(const TargetDevice& target) { return static_cast<CpuLevel>(target.level); }

}  // namespace rlx::cpu
