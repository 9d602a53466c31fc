#pragma once
#include "lowering/claim.h"

namespace rlx::cpu {

/// Dots, and convolutions as such, that multiply much, with what is computed from their results and of their left operands.
const Claim& product_claim();

}  // namespace rlx::cpu
