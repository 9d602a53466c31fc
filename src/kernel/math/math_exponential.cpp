#include "kernel/math/math_functions.h"

namespace rlx::math {
namespace {

/// x = number * ln 2 + r with |r| <= ln 2 / 2.
struct Reduced {
  Nearest n;
  Term r;
};
Reduced reduce(const Term& x) {
  Nearest n = nearest(x, 1 / ln2);
  const Term high = fma(n.number, -ln2_head, x);  // exact: multiples of 2^-24 below 1
  return {n, fma(n.number, -ln2_rest, high)};
}

/// e^r for |r| <= ln 2 / 2, relative error 3e-9 before rounding.
Term exp_of_reduced(const Term& r) { return polynomial(r, {1, 1, 0.49999994, 0.166665152, 0.0416680835, 0.0083693536, 0.00138405629}); }

/// e^x for -87 <= x <= 88; NaN stays.
Term exp_in_range(const Term& x) {
  const Reduced at = reduce(x);
  return exp_of_reduced(at.r) * power_of_two(at.n.bits);
}

}  // namespace

Term exp(const Term& x) {
  const Reduced at = reduce(x);
  // 2^n goes straight into the exponent field; outside of the normal numbers the field is wrong and replaced.
  const Term y = bitcast(bitcast(exp_of_reduced(at.r), i32) + (at.n.bits << 23), f32);
  const Term finite = select(x <= 88.72283172607422, y, x + infinity);
  return select(x < -87.33654022216797, 0, finite);
}

Term expm1(const Term& x) {
  const Term clamped = at_least(at_most(x, 89), -20);
  const Reduced at = reduce(clamped);
  const Term& r = at.r;
  // e^x - 1 = 2 (scale - 1/2 + scale r + scale (e^r - 1 - r)): half the scale, as 2^128 would overflow.
  const Term scale = power_of_two(at.n.bits - 1), offset = scale - 0.5;
  const Term curved = r * r * polynomial(r, {0.5, 0.166666657, 0.041666463, 0.00833363924, 0.00139356777, 0.000196630892});
  const Term sum = fma(scale, r, offset);
  const Term lost = fma(scale, r, offset - sum);  // of the sum's rounding
  const Term y = (sum + fma(scale, curved, lost)) * 2;
  return select(abs(x) < 0x1p-25, x, y);
}

Term tanh(const Term& x) {
  const Term a = abs(x), z = a * a;
  const Term small = fma(a * z, polynomial(z, {-0.333332986, 0.133319363, -0.0537847169, 0.0207986254, -0.00589796668}), a);
  const Term large = 1 - 2 / (exp_in_range(at_most(a, 10) * 2) + 1);
  return with_sign_of(select(a < 0.6, small, large), x);
}

Term erf(const Term& x) {
  const Term a = abs(x), z = a * a;
  const Term small = fma(a, polynomial(z, {0.128379121, -0.37612325, 0.112801805, -0.0267113131, 0.00491755363, -0.000563142996}), a);
  // The fourth root of 1 - erf is nearly a polynomial. From 3.99 on its fourth power is below 2^-25 and the result 1 without being chosen,
  // as it must be: 1 + erf(-x) is the tail of gelu. At 4.25 the polynomial is least.
  const Term root = polynomial(at_most(a, 4.25), {1.00405884, -0.302963287, -0.0732992887, -0.0413893536, 0.0612198263, -0.0206664875,
                                                  0.00296995975, -0.000160666503});
  const Term square = root * root;
  const Term large = fma(square, neg(square), 1);
  return with_sign_of(select(a < 1, small, large), x);
}

}  // namespace rlx::math
