#include "passes/complex_rules.h"

#include <cmath>
#include <map>
#include <numbers>

#include "ops/scalar/twofold.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using Z = ComplexValue;

Value is_infinite(Value x) { return eq(abs(x), like(x, infinity)); }
Value either(Value (*test)(Value), const Z& x) { return logical_or(test(x.re), test(x.im)); }

/// x where it is finite, else its sign, 1 for NaN.
Value bounded(Value x) { return select(lt(abs(x), like(x, infinity)), x, select(lt(x, like(x, 0)), like(x, -1), like(x, 1))); }
/// 0, of the sign of the product, where a factor is 0 whatever the other: sinh(0) cos(infinity) is 0.
Value times(Value a, Value b) {
  Value zero = like(a, 0);
  return select(eq(a, zero), a * bounded(b), select(eq(b, zero), bounded(a) * b, a * b));
}
/// The sine or cosine of an angle that has none counts where the factor is infinite, as C's Annex G has it: infinity of either sign.
Value beside_infinity(Value is_endless, Value of_angle, double value) {
  return select(logical_and(is_endless, ne(of_angle, of_angle)), like(of_angle, value), of_angle);
}

Z times_i(const Z& x) { return {-x.im, x.re}; }
Z over_i(const Z& x) { return {x.im, -x.re}; }
Value with_sign(Value size, Value of) { return select(is_negative(of), -size, size); }
Z scaled(const Z& x, Value factor) { return {x.re * factor, x.im * factor}; }
Z in_f64(const Z& x) { return {cast(x.re, f64), cast(x.im, f64)}; }
Z in_f32(const Z& x) { return {cast(x.re, f32), cast(x.im, f32)}; }

/// x times a power of two that keeps squares of its parts in range, and the inverse of that power.
struct Balanced {
  Z x;
  Value undo;
  Value log_undo;
};
Balanced balanced(const Z& x) {
  const bool wide = x.re.dtype() == f64;
  const double limit = wide ? 500 : 60, places = wide ? 600 : 80;
  Value largest = max(abs(x.re), abs(x.im));
  Value is_large = gt(largest, like(largest, std::exp2(limit))), is_small = lt(largest, like(largest, std::exp2(-limit)));
  const auto by_size = [&](double large, double small, double other) {
    return select(is_large, like(largest, large), select(is_small, like(largest, small), like(largest, other)));
  };
  const double log_of_power = places * std::numbers::ln2;
  return {scaled(x, by_size(std::exp2(-places), std::exp2(places), 1)), by_size(std::exp2(places), std::exp2(-places), 1),
          by_size(log_of_power, -log_of_power, 0)};
}
Value modulus(const Balanced& x) { return sqrt(x.x.re * x.x.re + x.x.im * x.x.im); }

/// e^x as e^(x - shift) and the factor e^shift: the first is finite wherever the product with a sine or cosine is.
struct SplitExp {
  Value near, factor;
};
SplitExp split_exp(Value x) {
  const bool wide = x.dtype() == f64;
  const double limit = wide ? 700 : 80, shift = wide ? 350 : 40;
  Value is_large = gt(x, like(x, limit));
  return {exp(select(is_large, x - shift, x)), select(is_large, like(x, std::exp(shift)), like(x, 1))};
}

Z negated(const Z& x, const Z&) { return {-x.re, -x.im}; }
Z sum(const Z& x, const Z& y) { return {x.re + y.re, x.im + y.im}; }
Z difference(const Z& x, const Z& y) { return {x.re - y.re, x.im - y.im}; }
Z product(const Z& x, const Z& y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }

/// 1/4 for numbers whose parts may not be added, else 1.
Value room(const Z& x) {
  Value largest = max(abs(x.re), abs(x.im));
  return select(gt(largest, like(largest, 0x1p1020)), like(largest, 0.25), like(largest, 1));
}

/// Smith's algorithm: divides by the larger part of y first. A quotient by zero has the parts of x divided by it; one by infinity is 0.
Z smith_quotient(Z x, Z y) {
  Value zero = like(y.re, 0), is_zero = complex_equal(y, {zero, zero}), infinite = logical_or(is_infinite(y.re), is_infinite(y.im));
  Value divisor = y.re, x_room = room(x), y_room = room(y), undo = select(infinite, zero, y_room / x_room);
  const auto direction = [&](Value part) {
    return select(infinite, with_sign(select(is_infinite(part), like(part, 1), zero), part), part * y_room);
  };
  x = scaled(x, x_room), y = {direction(y.re), direction(y.im)};
  Value by_real = ge(abs(y.re), abs(y.im));
  Value large = select(by_real, y.re, y.im), small = select(by_real, y.im, y.re);
  Value ratio = small / large, denominator = large + small * ratio, turned = x.re * ratio;
  Value re = select(by_real, x.re + x.im * ratio, turned + x.im), im = select(by_real, x.im - turned, x.im * ratio - x.re);
  return {select(is_zero, x.re / divisor, re / denominator * undo), select(is_zero, x.im / divisor, im / denominator * undo)};
}
/// f64 holds the squares of f32.
Z quotient(const Z& x, const Z& y) { return x.re.dtype() == f64 ? smith_quotient(x, y) : in_f32(smith_quotient(in_f64(x), in_f64(y))); }

Z exponential(const Z& x, const Z&) {
  const SplitExp e = split_exp(x.re);
  Value cosine = beside_infinity(is_infinite(x.re), cos(x.im), 1), sine = beside_infinity(eq(x.re, like(x.re, -infinity)), sin(x.im), 0);
  return {e.near * cosine * e.factor, select(eq(x.im, like(x.im, 0)), x.im, e.near * sine * e.factor)};
}

/// log |1 + d + i c|, where d > -1/2 and neither is large: (1 + d)^2 + c^2 - 1 in twice the digits, as it may cancel.
Value log_near_one(Value d, Value c) {
  const Twofold rest = Twofold{d * 2, like(d, 0)} + exact_product(d, d) + exact_product(c, c);
  return log1p(rest.high + rest.low) * 0.5;
}

/// log |x| + i angle(x).
Z logarithm(const Z& x, const Z&) {
  const Balanced b = balanced(x);
  Value far = select(either(is_infinite, x), like(x.re, infinity), log(modulus(b)) + b.log_undo);
  Value large = max(abs(x.re), abs(x.im)), small = min(abs(x.re), abs(x.im));
  Value is_near = logical_and(gt(large, like(large, 0.5)), lt(large, like(large, 2)));
  Value near = log_near_one(select(is_near, large, like(large, 1)) - 1, select(is_near, small, like(small, 0)));
  return {select(is_near, near, far), atan2(x.im, x.re)};
}

/// The root with a real part >= 0 and the sign of the imaginary part of x.
Z square_root(const Z& x, const Z&) {
  const Balanced b = balanced(x);
  Value endless = like(x.re, infinity), large = sqrt((abs(b.x.re) + modulus(b)) * 0.5) * sqrt(b.undo);
  large = select(either(is_infinite, x), endless, large);
  Value is_zero = eq(large, like(large, 0)), is_right = ge(x.re, like(x.re, 0));
  Value small = select(is_infinite(x.im), endless, abs(x.im) / (select(is_zero, like(large, 1), large) * 2));
  return {select(is_right, large, small), with_sign(select(is_right, small, large), x.im)};
}

/// Hyperbolic cosine and sine of x divided by `factor`.
struct Hyperbolic {
  Value cosine, sine, factor;
};
Hyperbolic hyperbolic(Value x) {
  Value size = abs(x);
  const SplitExp e = split_exp(size);
  Value is_large = gt(e.factor, like(x, 1));
  Value m = expm1(select(is_large, like(x, 0), size)), small_sine = (m + m / (m + 1)) * 0.5;
  Value half = e.near * 0.5, sine = select(is_large, half, small_sine), cosine = select(is_large, half, half + 0.5 / e.near);
  return {cosine, with_sign(sine, x), e.factor};
}
Z hyperbolic_sine(const Z& x) {
  const Hyperbolic h = hyperbolic(x.re);
  return scaled({times(h.sine, beside_infinity(is_infinite(x.re), cos(x.im), 1)), times(h.cosine, sin(x.im))}, h.factor);
}
Z sine(const Z& x, const Z&) { return over_i(hyperbolic_sine(times_i(x))); }
/// cosh(i x).
Z cosine(const Z& x, const Z&) {
  const Hyperbolic h = hyperbolic(-x.im);
  return scaled({h.cosine * beside_infinity(is_infinite(x.im), cos(x.re), 1), times(h.sine, sin(x.re))}, h.factor);
}

/// sinh cosh / (sinh^2 + cos^2) and sin cos / (sinh^2 + cos^2), both divided by cosh^2, so that nothing overflows.
Z hyperbolic_tangent(const Z& x, const Z&) {
  Value t = tanh(x.re), e = exp(abs(x.re) * -2), inverse = 2 / (e + 1), squared = e * inverse * inverse;  // 1 / cosh^2
  Value is_endless = is_infinite(x.re), c = beside_infinity(is_endless, cos(x.im), 1), s = beside_infinity(is_endless, sin(x.im), 1);
  Value denominator = t * t + squared * (c * c), zero = like(t, 0);
  return {select(eq(x.re, zero), x.re, t / denominator), select(eq(x.im, zero), x.im, squared * (s * c) / denominator)};
}

/// The conjugate of the root by |x|, which is its square's length.
Z reciprocal_root(const Z& x, const Z& y) {
  const Z root = square_root(x, y);
  const Balanced b = balanced(x);
  Value length = modulus(b), is_endless = either(is_infinite, x), is_zero = eq(length, like(length, 0)), zero = like(length, 0);
  const auto share = [&](Value part) { return select(is_endless, zero, part / length / b.undo); };
  return {share(select(is_zero, like(length, 1), root.re)), with_sign(share(abs(root.im)), -x.im)};
}

/// x / |x|, 0 of 0.
Z direction(const Z& x, const Z&) {
  const Balanced b = balanced(x);
  Value length = modulus(b), is_zero = eq(length, like(length, 0)), divisor = select(is_zero, like(length, 1), length);
  return {b.x.re / divisor, b.x.im / divisor};
}

/// Near the imaginary axis (e^a - 1) cos b + (cos b - 1), where neither term cancels the other's digits.
Z exponential_less_one(const Z& x, const Z& y) {
  const Z power = exponential(x, y);
  Value is_near = lt(abs(x.re), like(x.re, 1)), half = sin(x.im * 0.5);
  Value near = expm1(select(is_near, x.re, like(x.re, 0))) * cos(x.im) - half * half * 2;
  return {select(is_near, near, power.re - 1), power.im};
}

Z logarithm_of_one_more(const Z& x, const Z& y) {
  const Z far = logarithm({x.re + 1, x.im}, y);
  Value zero = like(x.re, 0), is_near = logical_and(lt(max(abs(x.re), abs(x.im)), like(x.re, 1)), gt(x.re, like(x.re, -0.5)));
  return {select(is_near, log_near_one(select(is_near, x.re, zero), select(is_near, x.im, zero)), far.re), far.im};
}

/// For the imaginary part the fourth of log1p(4 |b| / (a^2 + (1 - |b|)^2)), as it is odd in b; far out that is b / |x|^2. The real part
/// there is a right angle.
Z arc_tangent(const Z& x, const Z&) {
  const bool wide = x.re.dtype() == f64;
  const double far_out = wide ? 0x1p60 : 0x1p30, close_by = wide ? 0x1p-500 : 0x1p-60;
  const auto is_large = [&](Value part) { return gt(abs(part), like(part, far_out)); };
  Value zero = like(x.re, 0), is_far = logical_or(is_large(x.re), is_large(x.im));
  Value a = select(is_far, zero, x.re), b = select(is_far, zero, abs(x.im)), rest = 1 - b;
  Value is_pole = logical_and(eq(rest, zero), lt(abs(a), like(a, close_by)));  // where a^2 would be 0
  Value near = select(is_pole, (std::numbers::ln2 - log(abs(a))) * 0.5, log1p(b * 4 / (a * a + rest * rest)) * 0.25);
  const Balanced out = balanced(x);
  Value length = modulus(out), is_endless = either(is_infinite, x);
  Value size = select(is_endless, zero, select(is_far, abs(out.x.im) / length / length / out.undo, near));
  Value right_angle = select(eq(x.re, x.re), with_sign(like(zero, std::numbers::pi / 2), x.re), x.re);
  Value angle = select(is_far, right_angle, atan2(x.re * 2, rest * (b + 1) - a * a) * 0.5);
  return {angle, with_sign(select(eq(x.im, zero), zero, size), x.im)};
}

/// e^(y log x) in f64: the exponent may be large, and its error is that of the power. Zero to the zero is 1, to a positive power 0.
Z power_of_f32(const Z& x, const Z& y) {
  const Z power = in_f32(exponential(product(in_f64(y), logarithm(in_f64(x), {})), {}));
  Value zero = like(x.re, 0), of_zero = complex_equal(x, {zero, zero}), to_zero = complex_equal(y, {zero, zero});
  const auto corrected = [&](Value part, double one) {
    return select(to_zero, like(part, one), select(of_zero, select(gt(y.re, zero), zero, like(zero, nan)), part));
  };
  return {corrected(power.re, 1), corrected(power.im, 0)};
}

using Rule = Z (*)(const Z& x, const Z& y);

const std::map<ScalarOp, Rule>& rules() {
  static const std::map<ScalarOp, Rule> all{{ScalarOp::neg, negated},
                                            {ScalarOp::add, sum},
                                            {ScalarOp::sub, difference},
                                            {ScalarOp::mul, product},
                                            {ScalarOp::div, quotient},
                                            {ScalarOp::exp, exponential},
                                            {ScalarOp::log, logarithm},
                                            {ScalarOp::sqrt, square_root},
                                            {ScalarOp::sin, sine},
                                            {ScalarOp::cos, cosine},
                                            {ScalarOp::tanh, hyperbolic_tangent},
                                            {ScalarOp::pow, power_of_f32},
                                            {ScalarOp::rsqrt, reciprocal_root},
                                            {ScalarOp::sign, direction},
                                            {ScalarOp::expm1, exponential_less_one},
                                            {ScalarOp::log1p, logarithm_of_one_more},
                                            {ScalarOp::atan, arc_tangent}};
  return all;
}

}  // namespace

std::optional<ComplexValue> complex_rule(ScalarOp op, const ComplexValue& x, const ComplexValue& y) {
  const auto rule = rules().find(op);
  if (rule == rules().end() || (op == ScalarOp::pow && x.re.dtype() == f64)) return std::nullopt;
  return rule->second(x, y);
}

Value complex_equal(const ComplexValue& x, const ComplexValue& y) { return logical_and(eq(x.re, y.re), eq(x.im, y.im)); }

}  // namespace rlx
