#pragma once
#include "ir/op.h"

namespace rlx {

/// Integers u32 or u64, below 2^bits, that are ordered as the elements they stand for.
struct Ranks {
  Value of;
  int bits;
};

/// The order of `sort`: NaN of either sign is the largest and equals itself; -0 equals 0. `descending` turns it round.
Ranks ranks_of(Value x, bool descending = false);

/// Lines (lines, n) in rising order, and the positions, i32 where they fit, from which their elements come.
struct Order {
  Value ranks, from;
};

/// The ranks sorted; equal ones stay in their order. With `before` the elements are in that order first, as further keys are sorted before.
/// Sizes alone decide which steps are taken.
Order sorted_order(const Ranks& ranks, Value before = {});

}  // namespace rlx
