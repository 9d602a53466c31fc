#include "kernel/math/math_functions.h"

namespace rlx::math {
namespace {

/// What x is multiplied by to count half turns, for |x| >= from, as a sum of two numbers. It is 1/pi, or, where the product would
/// be too large for its fraction to be kept, 2^k / pi mod 2, divided by 2^k, for a power of two that divides every f32 so large: the
/// product differs by whole turns. All products are below 2^49.
struct HalfTurns {
  double from, factor, rest;
};
constexpr HalfTurns ordinary{0, 0x1.45f306dc9c883p-2, -0x1.6b01ec5417056p-56};
constexpr HalfTurns huge[] = {
    {0x1p50, -0x1.1b1bbead603d9p-29, 0x1.5f47d4d377037p-83},
    {0x1p77, 0x1.4a7f09d5f47d5p-55, -0x1.6447e493ad4cep-110},
    {0x1p102, -0x1.505c1596447e5p-82, 0x1.b14acc9e21c82p-136},
};

/// sin(x + offset * pi), where offset is 0 or 1/2. The reduction follows Cody and Waite with fma in place of short constants. Beside a
/// large product the nearest integer is found to 1/16 only: |r| is at most 0.565 pi, for which the polynomial is made.
Term sine(const Term& x, double offset) {
  const Term wide = cast(x, f64), a = abs(wide);
  Term factor = wide.constant(ordinary.factor), rest = wide.constant(ordinary.rest);
  for (const HalfTurns& turns : huge) {
    const Term beyond = a >= turns.from;
    factor = select(beyond, turns.factor, factor);
    rest = select(beyond, turns.rest, rest);
  }
  const Nearest n = offset == 0 ? nearest(wide, factor) : nearest(fma(wide, factor, offset), 1);
  const Term whole = offset == 0 ? neg(n.number) : offset - n.number;
  const Term fraction = fma(wide, rest, fma(wide, factor, whole));  // the inner one loses nothing that counts beside its own size
  const Term r = fraction * 3.1415926535897931;
  // sin(pi n + r) = (-1)^n sin r
  const Term angle = cast(bitcast(bitcast(r, i64) ^ (n.bits << 63), f64), f32);
  return sine_of_half_turn(angle, polynomial(fma(angle, angle, -1), {-0.00227901526, -0.150584339, 0.00775438197, -0.00018763782,
                                                                     2.63256513e-06, -2.35417996e-08}));
}

}  // namespace

/// Below 2^-12 no term counts but x itself; others would be too small for normal numbers.
Term sin(const Term& x) { return select(abs(x) < 0x1p-12, x, sine(x, 0)); }
Term cos(const Term& x) { return sine(x, 0.5); }

Term atan(const Term& x) {
  return arctangent(
      x, 1.57079637050628662109, -4.37113900018624283e-8,
      {-0.333332986, 0.199985296, -0.142640173, 0.109508991, -0.0839938223, 0.0578827821, -0.0310981851, 0.0108690932, -0.00178283337});
}

}  // namespace rlx::math
