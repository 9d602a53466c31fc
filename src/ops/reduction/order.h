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

/// Positions, i32 where they fit, that bring the ranks of each line (lines, n) into rising order; equal ones stay in their order. With
/// `order` the elements are in that order before, as further keys are sorted first. Sizes alone decide which steps are taken.
Value sorted_order(const Ranks& ranks, Value order = {});

}  // namespace rlx
