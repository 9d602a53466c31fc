#pragma once
#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/claim.h"
#include "backends/cpu/execution/work.h"

namespace rlx::cpu {

void prepare_step(const AttentionViews& attention, Step& step, const Preparation& given);
void run_step(const AttentionViews& attention, const Step& step, const RunState& run);

}  // namespace rlx::cpu
