#include "kernel/math/math_wide.h"
#include "kernel/math/pairs.h"

namespace rlx::math {
namespace {

std::optional<double> constant_value(const Term& x) {
  const Expr* e = &x.kernel().expr(x.id());
  if (e->kind == Expr::Kind::scalar && e->op == ScalarOp::cast) e = &x.kernel().expr(e->args[0]);
  return e->kind == Expr::Kind::constant && is_float(e->dtype) ? std::optional(e->number) : std::nullopt;
}

}  // namespace

std::optional<Term> simple_power(const Term& x, const Term& y) {
  const auto number = constant_value(y);
  if (number == 1) return x * 1;
  if (number == 2) return x * x;
  if (number == 3) return x * x * x;
  if (number == -1) return 1 / x;
  return std::nullopt;
}

Term power_with_signs(const Term& x, const Term& y, const Term& magnitude) {
  // y is odd when it is an integer whose half is none.
  const Term whole = floor(y) == y, half = y * 0.5;
  const Term odd = whole & (floor(half) != half);
  const Term bits = bits_of(x);
  const Term outside = (x < 0) & (abs(x) < infinity) & !whole;
  const Term sign = select((bits < 0) & odd, bits.constant(x.dtype() == f64 ? -0x1p63 : -0x1p31), 0);
  const Term value = bitcast(bits_of(magnitude) ^ sign, x.dtype());
  const Term one = (y == 0) | (x == 1) | ((x == -1) & (abs(y) == infinity));
  return select(one, 1, select(outside | is_nan(x) | is_nan(y), not_a_number, value));
}

namespace wide {
namespace {

/// log x for x > 0, relative error 2^-65: 2 s + s^3 (2/3 + ...) for s = (m - 1) / (m + 1), of which all that counts is a pair.
Pair log_pair(const Term& x) {
  const Scaled at = scaled(x);
  const Term f = at.m - 1;
  const Pair below = fast_sum(at.m.constant(2), f);  // m + 1
  const Term inverse = 1 / below.high;
  const Term s = f * inverse;
  const Term s_low = fma(neg(s), below.low, fma(neg(s), below.high, f)) * inverse;
  const Pair square = product(s, s);
  const Term z = square.high, z_low = fma(s * 2, s_low, square.low);
  const Term u = z * long_polynomial(z, {0.4000000000000225, 0.2857142857010328, 0.22222222519273388, 0.18181784422966105,
                                         0.15386754803388286, 0.1325687560808287, 0.13195800552291828});
  const Pair factor = fast_sum(u.constant(2.0 / 3), u);
  const Term factor_low = factor.low + 3.700743415417188e-17;  // 2/3 - its f64
  const Pair cube = product(s, z);
  const Term cube_low = fma(s, z_low, fma(s_low, z, cube.low));
  const Pair curved = product(cube.high, factor.high);
  const Term curved_low = fma(cube.high, factor_low, fma(cube_low, factor.high, curved.low));
  const Pair m = fast_sum(s * 2, curved.high);
  const Term m_low = m.low + fma(s_low, 2, curved_low);
  const Pair turns = product(at.exponent, at.exponent.constant(ln2_high));
  const Pair sum = fast_sum(turns.high, m.high);
  return fast_sum(sum.high, sum.low + (fma(at.exponent, ln2_low, turns.low) + m_low));
}

}  // namespace

/// exp(y log x) with log x and the product as pairs, as in fdlibm and SLEEF.
Term pow(const Term& x, const Term& y) {
  if (const auto simple = simple_power(x, y)) return *simple;
  const Term a = abs(x);
  const Pair log = log_pair(a);
  const Term high = select(a == 0, -infinity, select(a == infinity, infinity, log.high));
  const Term whole = y * high;
  constexpr double beyond = 800;  // every such power is infinite or 0
  const Term inside = abs(whole) < beyond;
  const Term low = select(inside, fma(y, log.low, fma(y, high, neg(whole))), 0);
  return power_with_signs(x, y, exp_of_sum(at_least(at_most(whole, beyond), -beyond), low));
}

}  // namespace wide
}  // namespace rlx::math
