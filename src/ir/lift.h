#pragma once
#include "rlx/graph.h"

namespace rlx {

/// `value` as seen inside `region`: itself, or the capture input that stands for a value of an enclosing graph.
Value lift(GraphData& region, Value value);

}  // namespace rlx
