#pragma once
#include "kernel/kernel.h"

namespace rlx {

/// Rewrites exp, expm1, log, log1p, sin, cos, tanh, atan, erf and pow of floats as expressions without calls or branches, so that loops
/// over them become vector code: f32, f16 and bf16 in registers of f32, f64 in its own. `rem` stays a call of the C library: its quotient
/// may have a thousand digits, which takes a loop.
/// Guarantees: within 2 units in the last place of the exact value; signed zeros, infinities and NaN as in C. Subnormal results of exp
/// are 0, as those of every op while kernels run.
/// Without `has_f64` nothing of f32 is computed in f64.
/// fma becomes one instruction for f32 and f64, and for f16 and bf16 a sum in f64 that is rounded to the narrow type once; without
/// f64 one in f32, where what f32 does not hold is infinite or 0.
/// Arguments stay before users, and equal expressions are one; loads, stores and loops are the same.
void expand_math(Kernel& kernel, bool has_f64 = true);

}  // namespace rlx
