#pragma once
#include "lowering/claim.h"

namespace rlx::gpu {

/// Dots that multiply much, by tiles on chip, with what is computed from their results.
const Claim& product_claim();

}  // namespace rlx::gpu
