#pragma once
#include "ir/op.h"

namespace rlx {

/// Element i of x, along the last axis, at position to[i]; `fill` at other positions of the `size`. `x` and the integers `to` have one
/// shape; the positions of a line are distinct and inside. What scatter and sorting are made of where no code computes them whole.
Value place(Value x, Value to, const Dim& size, double fill = 0);

}  // namespace rlx
