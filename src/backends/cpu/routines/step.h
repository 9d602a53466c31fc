#pragma once
#include "backends/cpu/execution/work.h"
#include "backends/cpu/routines/routine.h"

namespace rlx::cpu {

/// A node that a routine computes.
struct RoutineWork {
  const Routine* routine;
  std::int32_t node;
};

void prepare_step(const RoutineWork& work, Step& step, const Preparation& given);
void run_step(const RoutineWork& work, const Step& step, const RunState& run);

}  // namespace rlx::cpu
