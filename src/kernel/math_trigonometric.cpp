#include "kernel/math_functions.h"

namespace rlx::math {
namespace {

/// x = n * pi/2 + r with |r| <= pi/4: r, and the low bits of n.
struct Turned {
  Term r;
  Term quadrant;
};
Turned reduce(const Term& x) {
  constexpr double two_over_pi = 0.63661977236758134308, half_pi_high = 1.5707963267948965580, half_pi_low = 6.1232339957367658e-17;
  // 2^47 radians: beyond, neighbouring f32 are millions of turns apart, and the product with n would need a third part.
  const Term known = select(abs(x) < 0x1p47, x, not_a_number), wide = cast(known, f64);
  const Nearest n = nearest(wide, two_over_pi);
  // Exact: the product inside fma, and the difference, as both are multiples of 2^-52 below 1.
  const Term leading = fma(n.number, -half_pi_high, wide);
  return {cast(fma(n.number, -half_pi_low, leading), f32), cast(n.bits, i32)};
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
