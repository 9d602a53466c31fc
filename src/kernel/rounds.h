#pragma once
#include <vector>

#include "kernel/schedule.h"

namespace rlx {

/// A part of a number of rounds: `size` times `share`.
struct Rounds {
  Dim size;
  double share = 1;
};

/// How many rounds all loops of a block take together, at most: the sum of these parts. The look that ends a loop is a round of it.
/// Of schedules with lanes, without groups or vectors.
std::vector<Rounds> rounds_of(const Kernel& kernel, const Block& block);

}  // namespace rlx
