#pragma once
#include <vector>

#include "models/config/pooling_config.h"
#include "rlx/graph.h"

namespace rlx {

/// states (B, S, H), keep (B, S): 0 for padding -> (B, H * modes). Padding never counts.
Value pool(Value states, Value keep, const std::vector<Pooling>& modes);

/// x / max(|x|, 1e-12) with the Euclidean norm over the last axis.
Value normalize_rows(Value x);

}  // namespace rlx
