#pragma once
#include "lowering/attention/attention_views.h"

namespace rlx::cpu {

/// Takes q, k and v in f32 or bf16, a bias in f32, positions in i32 or i64, heads of up to 1024 features.
const Claim& attention_claim();

}  // namespace rlx::cpu
