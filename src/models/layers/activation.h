#pragma once
#include "models/config/hidden_activation.h"
#include "rlx/graph.h"

namespace rlx {

/// x through the function.
Value activate(HiddenActivation kind, Value x);

}  // namespace rlx
