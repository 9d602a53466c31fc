#pragma once
#include "lowering/claim.h"

namespace rlx::gpu {

/// Products of several rows with weights in blocks, by tiles for which these are decoded on chip.
const Claim& block_product_claim();

}  // namespace rlx::gpu
