#pragma once
#include "lowering/claim.h"

namespace rlx::cpu {

/// Takes the nodes of which a routine is known, and concats of many stored values.
const Claim& routine_claim();

}  // namespace rlx::cpu
