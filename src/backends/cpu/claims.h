#pragma once
#include "lowering/claim.h"

namespace rlx::cpu {

/// What code written by hand computes on the CPU; without `all` only that which has no other form here: states that change where they lie.
std::vector<const Claim*> claims(bool all);

}  // namespace rlx::cpu
