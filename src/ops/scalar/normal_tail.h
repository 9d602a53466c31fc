#pragma once
#include "rlx/ops.h"

namespace rlx {

/// 1 - Phi(a), Phi being the distribution function of a standard normal, without the cancellation: for a >= 0 within 2 units in the last
/// place (f32: 4), also where it is tiny; NaN stays.
struct NormalTail {
  double rate;    // a = sqrt(2 rate) x: 1/2 or 1, so that a^2/2 is free of the rounding of a
  double factor;  // of the result, which is not rounded on its own
  /// factor * weight * (1 - Phi(sqrt(2 rate) x)), 0 where e^(-rate x^2) is no normal number. f32 or f64, x >= 0 or NaN.
  Value of(Value x, Value weight = {}) const;
};

}  // namespace rlx
