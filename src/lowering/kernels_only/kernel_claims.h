#pragma once
#include "lowering/claim.h"

// Claims that any device can take, as what they launch are generated kernels.

namespace rlx {

/// States that change where they lie: a kernel for each window.
const Claim& window_claim();
/// What a product reads many times, and what else is dear and read by many lanes, is computed once.
const Claim& factor_claim();
/// Elements of an operand that are stored where the op says that they belong.
const Claim& destination_claim();

/// Reductions of very many terms are computed in two steps; where lanes work together, those of many terms to few results too.
const Claim& split_claim();

/// Products with weights in blocks, and their decoding.
const Claim& block_claim();

/// Those of a device that brings none of its own; `all`: also those in the place of composites' bodies.
std::vector<const Claim*> kernel_claims(bool all = true);

}  // namespace rlx
