#pragma once
#include "backends/cpu/machine/cpu_features.h"
#include "lowering/target.h"

namespace rlx::cpu {

inline CpuLevel level_of(const TargetDevice& target) { return static_cast<CpuLevel>(target.level); }

}  // namespace rlx::cpu
