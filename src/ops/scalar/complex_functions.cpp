// The inverse functions are Kahan's ("Branch cuts for complex elementary functions", 1987): square roots of 1 - z and 1 + z, whose product
// is never formed where it would cancel, and whose signs of zero choose the side of a branch cut.
#include "ops/scalar/complex_functions.h"

#include <numbers>

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

/// What is so far from 0 that 1 does not count beside its square, infinities too: there z is its own root, and the logarithm of 2 |z| a
/// size.
struct OffCentre {
  Value is_far, is_below, near, size;
  explicit OffCentre(Value z) {
    const double limit = z.dtype() == c128 ? 0x1p40 : 0x1p20;
    const auto is_large = [&](Value part) { return gt(abs(part), like(part, limit)); };
    is_far = logical_or(is_large(real(z)), is_large(imag(z))), is_below = is_negative(imag(z));
    near = select(is_far, zeros_like(z), z), size = real(log(z)) + std::numbers::ln2;
  }
  Value choose(Value far, Value other) const { return select(is_far, far, other); }
  Value with_sign(Value x) const { return select(is_below, -x, x); }
};

Value imaginary_product(Value x, Value y) { return real(x) * imag(y) + imag(x) * real(y); }
Value real_product(Value x, Value y) { return real(x) * real(y) - imag(x) * imag(y); }

}  // namespace

Value complex_scaled(Value z, double factor) { return complex(real(z) * factor, imag(z) * factor); }

/// Of halves: (|a| - |b|) (|a| + |b|) does not overflow before a^2 - b^2 does.
Value complex_square(Value z) {
  const Value a = real(z) * 0.5, b = imag(z) * 0.5;
  return complex((abs(a) - abs(b)) * (abs(a) + abs(b)) * 4, a * b * 8);
}

Value complex_tan(Value z) { return over_i(tanh(times_i(z))); }
Value complex_sinh(Value z) { return over_i(sin(times_i(z))); }
Value complex_cosh(Value z) { return cos(times_i(z)); }

Value complex_asin(Value z) {
  const Value zero = like(real(z), 0);
  const OffCentre off(z);
  const Roots r = roots(off.near);
  const Value angle = atan2(real(off.near), real_product(r.below, r.above)), size = asinh(imaginary_product(conj(r.below), r.above));
  return complex(off.choose(atan2(real(z), abs(imag(z))), select(eq(real(z), zero), real(z), angle)),
                 off.choose(off.with_sign(off.size), size));
}

Value complex_acos(Value z) {
  const Value zero = like(real(z), 0);
  const OffCentre off(z);
  const Roots r = roots(off.near);
  const Value angle = atan2(real(r.below), real(r.above)) * 2, size = asinh(imaginary_product(conj(r.above), r.below));
  return complex(off.choose(atan2(abs(imag(z)), real(z)), select(eq(real(z), zero), like(zero, std::numbers::pi / 2), angle)),
                 off.choose(-off.with_sign(off.size), size));
}

Value complex_asinh(Value z) { return over_i(complex_asin(times_i(z))); }

/// i acos(z) or -i acos(z), whichever has a real part >= 0.
Value complex_acosh(Value z) {
  const Value y = complex_acos(z);
  return complex(abs(imag(y)), select(is_negative(imag(z)), -real(y), real(y)));
}

Value complex_atanh(Value z) { return over_i(atan(times_i(z))); }

Value slope_of_complex_asin(Value z) { return rsqrt(1 - z) * rsqrt(z + 1); }

}  // namespace rlx
