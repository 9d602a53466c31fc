#pragma once
#include "lowering/claim.h"

namespace rlx::gpu {

/// In the order in which they take their parts of a graph. `all`: also those in the place of composites' bodies.
std::vector<const Claim*> claims(bool all);

}  // namespace rlx::gpu
