#pragma once
#include "backends/backend.h"
#include "backends/cpu/machine/level_of.h"

namespace rlx::cpu {

/// This machine's CPU.
const Backend& backend();

/// This CPU with the instructions of a level; without claims an op's own evaluation computes what no kernel does.
TargetDevice target_of(CpuLevel level = cpu_level(), bool with_claims = true);

}  // namespace rlx::cpu
