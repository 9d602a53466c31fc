#pragma once
#include "backends/cpu/execute.h"
#include "backends/cpu/quantized/claim.h"

namespace rlx::cpu {

/// How many steps from the first on are products with weights in blocks that run as one loop: of the same rows, by weights that stay. 1 for
/// any other step.
std::size_t products_in_one_loop(std::span<const Step> steps);

void prepare_step(const BlockDot& dot, Step& step, const Preparation& given);
void run_step(const BlockDot& dot, const Step& step, const RunState& run);
/// Runs such steps.
void run_block_dots(std::span<const Step> steps, const RunState& run);

/// Adds which parts of a step's panels it is about to read; the experts that rows go to must be known.
void add_weights_ahead(const Step& step, const Panels& panels, const RunState& run, std::vector<std::span<const std::byte>>& ahead);

}  // namespace rlx::cpu
