#pragma once
#include "lowering/claim.h"

namespace rlx::gpu {

/// Attention as one launch. Takes q, k and v in f32, bf16 or f16, a bias in f32, positions in i32 or i64, heads of up to 256 features.
const Claim& attention_claim();

}  // namespace rlx::gpu
