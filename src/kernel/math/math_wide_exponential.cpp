#include "kernel/math/math_wide.h"

namespace rlx::math::wide {
namespace {

/// x = number * ln 2 + r with |r| <= ln 2 / 2, after Cody and Waite.
struct Reduced {
  Nearest n;
  Term r;
};
Reduced reduce(const Term& x) {
  Nearest n = nearest(x, 1 / ln2);
  const Term high = fma(n.number, -ln2_high, x);  // exact: multiples of 2^-54 below 1/2
  return {n, fma(n.number, -ln2_low, high)};
}

/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, within 2^-55 of e^r - 1.
Term curvature(const Term& r) {
  return long_polynomial(
      r, {0.5000000000000006, 0.16666666666666585, 0.04166666666657639, 0.008333333333391318, 0.0013888888931690394, 0.0001984126971550773,
          2.4801505125817613e-05, 2.7557410409665763e-06, 2.762609414940558e-07, 2.505293941169257e-08});
}
Term exp_of_reduced(const Term& r) { return fma(r * r, curvature(r), r) + 1; }

/// e^x for -708 <= x <= 709; NaN stays.
Term exp_in_range(const Term& x) {
  const Reduced at = reduce(x);
  return exp_of_reduced(at.r) * power_of_two(at.n.bits);
}

Term exp_of(const Reduced& at, const Term& x) {
  // 2^n goes straight into the exponent field; outside of the normal numbers the field is wrong and replaced.
  const Term y = bitcast(bits_of(exp_of_reduced(at.r)) + (at.n.bits << 52), f64);
  const Term finite = select(x <= 709.782712893384, y, x + infinity);
  return select(x < -708.3964185322641, 0, finite);
}

}  // namespace

Term exp(const Term& x) { return exp_of(reduce(x), x); }

Term exp_of_sum(const Term& x, const Term& low) {
  Reduced at = reduce(x);
  at.r = at.r + low;
  return exp_of(at, x);
}

Term expm1(const Term& x) {
  const Term clamped = at_least(at_most(x, 710), -50);
  const Reduced at = reduce(clamped);
  // e^x - 1 = 2 (scale - 1/2 + scale r + scale (e^r - 1 - r)): half the scale, as 2^1024 would overflow.
  const Term scale = power_of_two(at.n.bits - 1), offset = scale - 0.5;
  const Term sum = fma(scale, at.r, offset);
  const Term lost = fma(scale, at.r, offset - sum);  // of the sum's rounding
  const Term y = (sum + fma(scale, at.r * at.r * curvature(at.r), lost)) * 2;
  return select(abs(x) < 0x1p-54, x, y);
}

/// Below 5/8 a rational function, as in Cephes; one division serves both halves.
Term tanh(const Term& x) {
  const Term a = abs(x), z = a * a, small = a < 0.625;
  const Term over = z * polynomial(z, {-0.3333333333333333, -0.020498799708498872, -0.0001991780435861287});
  const Term under = polynomial(z, {1, 0.4614963991254931, 0.02329133187629886, 0.0002065337374875025});
  const Term power = exp_in_range(at_most(a, 20) * 2);
  const Term quotient = select(small, over, -2) / select(small, under, power + 1);
  const Term base = select(small, a, 1);
  return with_sign_of(fma(base, quotient, base), x);
}

Term erf(const Term& x) {
  const Term a = abs(x), z = a * a;
  const Term small =
      fma(a,
          long_polynomial(z, {0.12837916709551256, -0.3761263890318352, 0.11283791670944186, -0.02686617064311159, 0.0052239776061191925,
                              -0.0008548325929337172, 0.00012055293577292752, -1.492471230498305e-05, 1.6447131560076307e-06,
                              -1.6206313353551593e-07, 1.3710977426546681e-08, -7.779460911104343e-10}),
          a);
  // log(1 - erf a), as in SLEEF; at 6 erf is 1 to the last bit.
  const Term exponent =
      polynomial(at_most(a, 6) - 2,
                 {-5.364941264616636, -4.418160805994415, -0.9237508418239507, -0.016465118137362802, 0.003570756347984898,
                  -0.0007323993780782125, 0.0001353093297031694, -2.0706470721114615e-05, 1.952189873374597e-06, 2.0372822106636785e-07,
                  -1.731759335685757e-07, 5.769472991284926e-08, -1.3986629453331296e-08, 2.610313845292983e-09, -2.583782971785525e-10,
                  -7.155886761032005e-11, 3.69201887949896e-11, -4.9276086977384756e-12});
  return with_sign_of(select(a < 1, small, 1 - exp_in_range(exponent)), x);
}

}  // namespace rlx::math::wide
