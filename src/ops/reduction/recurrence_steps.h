#pragma once
#include "ops/reduction/recurrence.h"

namespace rlx {

/// The result of `linear_recurrence`, by one step for each element, or for each of a block of them.
Value linear_recurrence_in_steps(Value a, Value b, std::int64_t axis, bool reverse);

}  // namespace rlx
