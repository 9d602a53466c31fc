#include "kernel/math_functions.h"

namespace rlx::math {
namespace {

/// For |x| >= from: a factor that makes x an angle below 2^46 and differs from it by whole turns, as a sum of two numbers. It is
/// 2^k mod 2 pi, divided by 2^k, for a power of two that divides every f32 so large.
struct Folding {
  double from, factor, rest;
};
constexpr Folding foldings[] = {
    {0x1p47, -0x1.c9b6498c1137fp-25, -0x1.2643605c762f1p-82},
    {0x1p68, 0x1.9a6f58862bf99p-46, 0x1.7e60254ee49ebp-100},
    {0x1p89, -0x1.82ac8377ff216p-70, 0x1.17955574142a1p-125},
    {0x1p110, -0x1.214a9b91233b2p-90, 0x1.45f5262caae07p-145},
};

/// x = n * pi/2 + r with |r| <= pi/4: r, and the low bits of n.
struct Turned {
  Term r;
  Term quadrant;
};
Turned reduce(const Term& x) {
  constexpr double two_over_pi = 0.63661977236758134308, half_pi_high = 1.5707963267948965580, half_pi_low = 6.1232339957367658e-17;
  const Term wide = cast(x, f64), a = abs(x);
  Term factor = wide.constant(1), rest = wide.constant(0);
  for (const Folding& folding : foldings) {
    const Term beyond = a >= folding.from;
    factor = select(beyond, folding.factor, factor);
    rest = select(beyond, folding.rest, rest);
  }
  const Term angle = wide * factor;
  const Term lost = fma(wide, rest, fma(wide, factor, neg(angle)));  // of the product, below 1/100; 0 for |x| < 2^47
  const Nearest n = nearest(angle, two_over_pi);
  // Exact: the product inside fma, and the difference, as both are multiples of 2^-52 below 1.
  const Term leading = fma(n.number, -half_pi_high, angle);
  return {cast(fma(n.number, -half_pi_low, leading + lost), f32), cast(n.bits, i32)};
}

/// sin(x + turns * pi/2)
Term sine(const Term& x, int turns) {
  const Turned turned = reduce(x);
  const Term r = turned.r, quadrant = turned.quadrant + turns;
  const Term z = r * r;
  const Term sin_r = fma(r * z, polynomial(z, {-0.166666552, 0.00833218731, -0.000195178975}), r);
  const Term cos_r = fma(z * z, polynomial(z, {0.0416666456, -0.00138873095, 2.44323273e-05}), fma(z, -0.5, 1));
  const Term y = select((quadrant & 1) == 0, sin_r, cos_r);
  return bitcast(bitcast(y, i32) ^ ((quadrant & 2) << 30), f32);
}

}  // namespace

Term sin(const Term& x) { return select(x == 0, x, sine(x, 0)); }
Term cos(const Term& x) { return sine(x, 1); }

Term atan(const Term& x) {
  const Term a = abs(x), beyond_one = a > 1;
  // atan a = pi/2 - atan(1/a)
  const Term u = select(beyond_one, -1 / a, a), z = u * u;
  const Term high = select(beyond_one, u.constant(1.57079637050628662109), 0),
             low = select(beyond_one, u.constant(-4.37113900018624283e-8), 0);
  const Term curved = polynomial(
      z, {-0.333332986, 0.199985296, -0.142640173, 0.109508991, -0.0839938223, 0.0578827821, -0.0310981851, 0.0108690932, -0.00178283337});
  return with_sign_of((high + u) + fma(u * z, curved, low), x);
}

}  // namespace rlx::math
