#pragma once
#include <vector>

#include "ir/index.h"

namespace rlx {

/// What is known of a guard for all values of the variables in it.
bool always_holds(const Guard& guard);
bool never_holds(const Guard& guard);

/// True where one of the guards, all of which must hold, never does.
bool never_hold(const std::vector<Guard>& guards);

}  // namespace rlx
