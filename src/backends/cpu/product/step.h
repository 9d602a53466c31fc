#pragma once
#include "backends/cpu/execution/work.h"
#include "backends/cpu/product/product.h"

namespace rlx::cpu {

/// Of a matrix product, or a convolution as one.
void prepare_step(const Product& product, Step& step, const Preparation& given);
void run_step(const Product& product, const Step& step, const RunState& run);

}  // namespace rlx::cpu
