#pragma once
#include "ops/wide.h"

namespace rlx {

// Functions of complex numbers z, from those that have rules of their own; branch cuts as in C and NumPy.

/// By parts: a product of complex numbers would make NaN of infinity times the part that a real factor has not.
Value complex_scaled(Value z, double factor);
Value complex_square(Value z);
Value complex_tan(Value z);
Value complex_sinh(Value z);
Value complex_cosh(Value z);
Value complex_asin(Value z);
Value complex_acos(Value z);
Value complex_asinh(Value z);
Value complex_acosh(Value z);
Value complex_atanh(Value z);

/// 1 / sqrt(1 - z^2), the slope of asin.
Value slope_of_complex_asin(Value z);

}  // namespace rlx
