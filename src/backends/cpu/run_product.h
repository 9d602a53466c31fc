#pragma once
#include "backends/cpu/execute.h"

namespace rlx::cpu {

/// Runs a matrix product, or a convolution as one.
void run_product(const Step& step, const Product& product, const RunState& run);

}  // namespace rlx::cpu
