#pragma once
#include "backends/cpu/execute.h"

namespace rlx::cpu {

/// Runs a product with weights in blocks.
void run_block_dot(const Step& step, const BlockDot& dot, const RunState& run);

}  // namespace rlx::cpu
