#pragma once
#include "backends/cpu/execution/execute.h"
#include "backends/cpu/quantized/claim.h"

namespace rlx::cpu {

void prepare_step(const BlockDot& dot, Step& step, const Preparation& given);
/// How many steps from the first on, which is that of `dot`, run as one loop: products of the same rows with weights in blocks that stay.
std::size_t steps_in_one_loop(const BlockDot& dot, std::span<const Step> steps);
void run_steps(const BlockDot& dot, std::span<const Step> steps, const RunState& run);

/// The panels of the experts that rows go to, which must be known. False where all are read.
bool add_chosen_weights(const BlockDot& dot, const Step& step, const RunState& run, WeightsAhead& ahead);

void prepare_step(const PackedBlocks& blocks, Step& step, const Preparation& given);
void run_step(const PackedBlocks& blocks, const Step& step, const RunState& run);

}  // namespace rlx::cpu
