#pragma once
#include <utility>

#include "quant/grid_blocks.h"
#include "quant/plain.h"
#include "quant/small_blocks.h"
#include "quant/super_blocks.h"
#include "quant/ternary.h"

namespace rlx::quant {

template <class... Scheme>
struct SchemeList {};

/// All types of tensors in GGUF files, in the order of their ids.
using Schemes = SchemeList<F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K, IQ2_XXS, IQ2_XS, IQ3_XXS,
                           IQ1_S, IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, I8, I16, I32, I64, F64, IQ1_M, BF16, TQ1_0, TQ2_0, MXFP4, NVFP4>;

}  // namespace rlx::quant
