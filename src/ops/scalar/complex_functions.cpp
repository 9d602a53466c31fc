// The inverse functions are Kahan's ("Branch cuts for complex elementary functions", 1987): square roots of 1 - z and 1 + z, whose product
// is never formed where it would cancel, and whose signs of zero choose the side of a branch cut.
#include "ops/scalar/complex_functions.h"

namespace rlx {
namespace {

Value times_i(Value z) { return complex(-imag(z), real(z)); }
Value over_i(Value z) { return complex(imag(z), -real(z)); }

/// Roots of one number less z, or z less one, and of one number and z.
struct Roots {
  Value below, above;
};
Roots roots(Value z) {
  const Value a = real(z), b = imag(z);
  return {sqrt(complex(1 - a, -b)), sqrt(complex(a + 1, b))};
}
Value imaginary_product(Value x, Value y) { return real(x) * imag(y) + imag(x) * real(y); }
Value real_product(Value x, Value y) { return real(x) * real(y) - imag(x) * imag(y); }

}  // namespace

Value complex_tan(Value z) { return over_i(tanh(times_i(z))); }
Value complex_sinh(Value z) { return over_i(sin(times_i(z))); }
Value complex_cosh(Value z) { return cos(times_i(z)); }

Value complex_asin(Value z) {
  const Roots r = roots(z);
  return complex(atan2(real(z), real_product(r.below, r.above)), asinh(imaginary_product(conj(r.below), r.above)));
}

Value complex_acos(Value z) {
  const Roots r = roots(z);
  return complex(atan2(real(r.below), real(r.above)) * 2, asinh(imaginary_product(conj(r.above), r.below)));
}

Value complex_asinh(Value z) { return over_i(complex_asin(times_i(z))); }

Value complex_acosh(Value z) {
  const Value below = sqrt(complex(real(z) - 1, imag(z))), above = roots(z).above;
  return complex(asinh(real_product(conj(below), above)), atan2(imag(below), real(above)) * 2);
}

Value complex_atanh(Value z) { return over_i(atan(times_i(z))); }

Value slope_of_complex_asin(Value z) { return rsqrt(1 - z) * rsqrt(z + 1); }

}  // namespace rlx
