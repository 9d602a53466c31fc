// Special functions: the logarithm of gamma and its derivative, Hurwitz's zeta, Bessel functions. Their series cancel near the zeros of
// the results, which would leave f32 no digits: every dtype is computed in f64 and rounded once.
#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "ir/sources.h"
#include "ops/scalar/far_digamma.h"
#include "ops/scalar/function.h"
#include "ops/scalar/gamma_roots.h"
#include "ops/scalar/horner.h"
#include "ops/scalar/special_fits.h"

namespace rlx {
namespace {

using In = std::span<const Value>;
using std::numbers::pi;

template <class Body>
Value in_f64(std::string_view op, Value x, Body body) {
  check_float(op, x);
  return cast(body(cast(x, f64)), x.dtype());
}
// The tangent of op's operand times `slope`.
Values times_in_f64(Value dx, Value slope) { return {cast(cast(dx, f64) * slope, dx.dtype())}; }

Value inside(Value v, double low, double high) { return logical_and(gt(v, like(v, low)), lt(v, like(v, high))); }

// Both sides of 0, where gamma has poles at the integers.
std::vector<Sample> around_poles() {
  auto all = elementwise_samples({}, 0.2, 14);
  auto negative = elementwise_samples({}, -2.8, -2.2);
  all.insert(all.end(), negative.begin(), negative.end());
  return all;
}

/// The polynomial at x, and how it changes between x and z, divided by z - x: no digits are lost where they are near each other.
struct Divided {
  Value at_x, slope;
  Divided(Value x, Value z, std::span<const double> coefficients) : at_x(like(x, coefficients.back())), slope(like(x, 0)) {
    for (std::size_t i = coefficients.size() - 1; i-- > 0;) {
      slope = fma(slope, z, at_x);
      at_x = fma(at_x, x, like(x, coefficients[i]));
    }
  }
};

// sin(pi v): pi is more than a number of f64, and what the product is rounded by counts as well.
Value sine_of_half_turns(Value v) {
  constexpr double pi_low = 1.2246467991473532e-16;
  Value angle = v * pi, lost = fma(v, like(v, pi), -angle) + v * pi_low;
  return fma(lost, cos(angle), sin(angle));
}

/// A place r between negative integers, by its distance from one of them, `whole`, for each element v; and t = v - r without error where
/// that is small. What a function is there is known, so that what follows from t has the digits that reflection loses: it subtracts.
struct Anchor {
  using Table = std::span<const std::array<double, 2>>;
  Table table;
  Value whole, row, fraction, distance, t;  // fraction: v - whole
  Anchor(Table of, Value v, Value whole_of_row, Value at) : table(of), whole(whole_of_row), row(cast(at, i32)), fraction(v - whole) {
    distance = looked_up([](auto r) { return r[0]; });
    t = (fraction - distance) - looked_up([](auto r) { return r[1]; });
  }
  template <class Of>
  Value looked_up(Of of) const {
    Array numbers(f64, {std::ssize(table)});
    for (std::size_t i = 0; i < table.size(); ++i) numbers.set_double(static_cast<std::int64_t>(i), static_cast<double>(of(table[i])));
    return take(make_constant(row.graph(), numbers), row, 0, IndexMode::clip);
  }
  template <class Of>
  Value of_angle(Of of) const {  // of the angle pi * distance
    return looked_up([&](auto r) { return of(std::numbers::pi_v<long double> * r[0]); });
  }
  Value reflected() const { return (1 - whole) - distance; }  // 1 - r
};
// v where the anchors of n = `first`, `first` + 1, ... 24 are, elsewhere a number that has one.
Value anchored(Value v, Value has_anchor, int first) { return select(has_anchor, v, like(v, -first - 0.25)); }
constexpr double last_anchor = -25;

// What the fit `stirling` is a polynomial of, at 1 / v.
Value stirling_power(Value inverse) { return fma(inverse * inverse, like(inverse, 18), like(inverse, -1)); }

struct LogGamma {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "lgamma";
  static constexpr std::string_view formula = "log |gamma(x)|; infinity at 0, -1, -2, ...; derivative digamma(x)";
  static auto fields() { return Fields<>{}; }
  static constexpr int shift = 10;
  /// Of v >= shift.
  static Value large(Value v) {
    Value inverse = 1 / v, series = inverse * horner(stirling_power(inverse), stirling);
    return (v - 0.5) * (log(v) - 1) + ((0.5 * std::log(2 * pi) - 0.5) + series);
  }
  /// Of 0.5 <= v <= 2.5, exact at the zeros 1 and 2; below 0.75 by gamma(v) = gamma(v + 1) / v.
  static Value near_zeros(Value v) {
    Value small = lt(v, like(v, 0.75)), w = select(small, v + 1, v);
    Value y = (w - 1) * (w - 2) * horner((w - 1.625) / 0.875, between_zeros);
    return select(small, y - log(select(small, v, like(v, 1))), y);
  }
  /// Of v >= 0.5: up to `shift` v is moved below 2.5, exactly, by gamma(v) = (v - 1) gamma(v - 1), so that nothing cancels.
  static Value right_half(Value v) {
    Value far = ge(v, like(v, shift)), rest = select(far, like(v, 1), v), product = like(v, 1);
    for (int k = 2; k < shift; ++k) {
      Value beyond = gt(rest, like(v, 2.5)), lower = rest - 1;
      product = select(beyond, product * lower, product);
      rest = select(beyond, lower, rest);
    }
    return select(far, large(select(far, v, like(v, shift))), near_zeros(rest) + log(product));
  }
  /// lgamma(b) - lgamma(b - t), b and b - t >= 3.
  static Value drop(Value b, Value t) {
    Value a = b - t, inverse_a = 1 / a, inverse_b = 1 / b;
    const Divided series(stirling_power(inverse_b), stirling_power(inverse_a), stirling);
    Value step = inverse_a * inverse_b * t;  // 1 / a - 1 / b
    Value slope = series.at_x + inverse_a * (inverse_a + inverse_b) * series.slope * 18;
    return fma(t, log(a) - 1, (0.5 - b) * log1p(-(t * inverse_b))) - step * slope;
  }
  /// Of v in -25..-2: by gamma(v) gamma(1 - v) = pi / sin(pi v) at v and at a root; where it is flat, by the slope from the root.
  static Value between_poles(Value v) {
    Value up = ceil(v), below = up - v, left = gt(below, like(v, 0.6));
    const Anchor at(lgamma_roots, v, select(left, up - 1, up), select(left, up * -2 - 3, up * -2 - 4));
    // q: sin(pi v) / sin(pi r) less 1
    Value half = sin(at.t * (pi / 2)), cotangent = at.of_angle([](auto x) { return std::cos(x) / std::sin(x); });
    Value q = fma(sine_of_half_turns(at.t), cotangent, half * half * -2), near = inside(q, -0.45, 1);
    Value sines = sine_of_half_turns(at.fraction) * at.of_angle([](auto x) { return 1 / std::sin(x); });
    Value ratio = select(near, log1p(select(near, q, like(v, 0))), log(abs(sines)));
    Value slope = select(left, horner((v + 2.75) / 0.15, left_slope), horner((v + 2.390625) / 0.234375, right_slope));
    return select(inside(v, -2.9, -2.16), at.t * slope, drop(at.reflected(), at.t) - ratio);
  }
  static Value body(const LogGamma&, Value x) {
    return in_f64(name, x, [&](Value v) {
      Value reflect = lt(v, like(v, 0.5)), y = right_half(select(reflect, 1 - v, v)), whole = round(v);
      Value mirrored = std::log(pi) - log(abs(sin((v - whole) * pi))) - y;  // gamma(v) gamma(1 - v) = pi / sin(pi v)
      Value pole = logical_and(le(v, like(v, 0)), eq(v, whole));            // of -infinity too
      if (x.dtype() == f64) {
        Value anchor = logical_and(inside(v, last_anchor, -2), logical_not(pole));
        mirrored = select(anchor, between_poles(anchored(v, anchor, 2)), mirrored);
      }
      return select(pole, like(v, infinity), select(reflect, mirrored, y));
    });
  }
  static Values jvp(const LogGamma&, In x, In, In dx) { return times_in_f64(dx[0], digamma(cast(x[0], f64))); }
  static std::vector<Sample> samples() { return around_poles(); }
};
const Op<LogGamma> lgamma_op;

constexpr double digamma_root = 1.4616321449683622, digamma_root_low = 9.549995429965697e-17;
// What `far_rest` is a polynomial of, at 1 / v^2.
Value far_power(Value square) { return fma(square, like(square, 12.5), like(square, -1)); }

struct Digamma {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "digamma";
  static constexpr std::string_view formula = "the derivative of log |gamma(x)|; NaN at 0, -1, -2, ...";
  static auto fields() { return Fields<>{}; }
  static Value positive(Value v) {
    Value far = gt(v, like(v, 2.5)), small = lt(v, like(v, 1)), far_v = select(far, v, like(v, 3)), inverse = 1 / far_v;
    Value square = inverse * inverse, outer = log(far_v) - (inverse * 0.5 + square * horner(far_power(square), far_rest));
    Value near_v = select(far, like(v, 2), select(small, v + 1, v));
    Value inner = ((near_v - digamma_root) - digamma_root_low) * (horner((near_v - 1.75) / 0.75, near_root) + 1 / (near_v * digamma_root));
    return select(far, outer, select(small, inner - 1 / select(small, v, like(v, 1)), inner));
  }
  /// digamma(b - t) - digamma(b), b and b - t >= 1; both are moved by 2.
  static Value change(Value b, Value t) {
    Value a = b - t, inverse_a = 1 / (a + 2), inverse_b = 1 / (b + 2), square_a = inverse_a * inverse_a;
    const Divided rest(far_power(inverse_b * inverse_b), far_power(square_a), far_rest);
    Value step = inverse_a * inverse_b * t;
    Value far = log1p(-(t * inverse_b)) - step * (0.5 + (inverse_a + inverse_b) * (rest.at_x + square_a * rest.slope * 12.5));
    return far - t * (1 / (a * b) + 1 / ((a + 1) * (b + 1)));
  }
  /// Of v in -25..0: by digamma(v) = digamma(1 - v) - pi / tan(pi v) at v and at a root.
  static Value between_poles(Value v) {
    Value up = ceil(v);
    const Anchor at(digamma_roots, v, up, -up);
    Value slope = at.of_angle([](auto x) { return std::numbers::pi_v<long double> / std::sin(x); });
    return sine_of_half_turns(at.t) * abs(slope / sine_of_half_turns(v - round(v))) + change(at.reflected(), at.t);
  }
  static Value body(const Digamma&, Value x) {
    return in_f64(name, x, [&](Value v) {
      Value zero = like(v, 0), reflect = le(v, zero), fraction = v - round(v), pole = logical_and(reflect, eq(fraction, zero));
      Value beside = logical_and(reflect, ne(fraction, zero)), turns = select(beside, fraction, like(v, 0.25));
      Value y = positive(select(reflect, 1 - v, v)), mirrored = y - cos(turns * pi) / sine_of_half_turns(turns) * pi;
      if (x.dtype() == f64) {
        // Elsewhere both terms have one sign, or one of them is much larger.
        Value lossy = logical_or(gt(fraction, like(v, 0.06)), lt(fraction, like(v, -0.4)));
        Value anchor = logical_and(logical_and(beside, lossy), gt(v, like(v, last_anchor)));
        Value far = logical_and(lt(v, like(v, last_anchor)), gt(fraction, like(v, 1.0 / 128)));
        mirrored = select(anchor, between_poles(anchored(v, anchor, 0)), mirrored);
        mirrored = select(far, digamma_beside_far_roots(select(far, v, like(v, last_anchor - 0.25))), mirrored);
      }
      return select(pole, like(v, nan), select(reflect, mirrored, y));
    });
  }
  /// digamma'(v) = zeta(2, v), of v < 0 by reflection.
  static Values jvp(const Digamma&, In x, In, In dx) {
    Value v = cast(x[0], f64), reflect = lt(v, like(v, 0)), slope = zeta(like(v, 2), select(reflect, 1 - v, v));
    Value sine = sin((v - round(v)) * pi);
    return times_in_f64(dx[0], select(reflect, square(pi / select(reflect, sine, like(v, 1))) - slope, slope));
  }
  static std::vector<Sample> samples() { return around_poles(); }
};
const Op<Digamma> digamma_op;

// Bernoulli's numbers B2, B4, ... B16: with arguments from 10 on, the first one left out is below 1e-17 of the result.
constexpr std::array<double, 8> bernoulli{1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510};
constexpr int shift = 20, lowest_q = -10;

struct Zeta {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "zeta";
  static constexpr std::string_view formula =
      "Hurwitz's zeta: the sum over k >= 0 of (q + k)^-s, operands s, q; infinity at s = 1, NaN for s < 1, and for q <= 0 but where s is "
      "whole: infinity at 0, -1, ... for even s, the sum between them down to -10";
  static auto fields() { return Fields<>{}; }
  struct Sum {
    Value value, by_s;
  };
  /// The sum up to `shift`, the rest by Euler and Maclaurin's formula (DLMF 25.11.28 in the form of 2.10.1); and its derivative by s.
  static Sum summed(Value s, Value q) {
    Value base = expand_dims(q, {-1}) + iota(q, {shift}, f64), terms = pow(base, -expand_dims(s, {-1}));
    Value z = q + shift, power = pow(z, 1 - s), vanishes = eq(power, like(s, 0)), safe = select(vanishes, like(s, 2), s);
    Value tail = 1 / (safe - 1) + 0.5 / z, by_s = -square(1 / (safe - 1)), inverse = square(1 / z), factor = safe * inverse,
          slope = inverse;
    double factorial = 2;
    for (int k = 1; k <= static_cast<int>(bernoulli.size()); ++k) {
      const double coefficient = bernoulli[static_cast<std::size_t>(k - 1)] / factorial;
      tail = tail + factor * coefficient, by_s = by_s + slope * coefficient;
      Value step = (safe + (2 * k - 1)) * (safe + 2 * k) * inverse;
      slope = slope * step + factor * (safe * 2 + (4 * k - 1)) * inverse;
      factor = factor * step;
      factorial *= (2 * k + 1) * (2 * k + 2);
    }
    return {sum(terms, {-1}) + power * tail, power * (by_s - log(z) * tail) - sum(log(base) * terms, {-1})};
  }
  /// Where the sum is a number, infinite, and 0.
  struct Places {
    Value allowed, endless, vanishes;
    Places(Value s, Value q) {
      Value zero = like(s, 0), one = like(s, 1), end = like(s, infinity), is_whole = eq(q, floor(q)), above = gt(s, one), half = s * 0.5;
      Value between = logical_and(logical_and(gt(q, like(q, lowest_q)), eq(s, floor(s))), logical_not(is_whole));
      Value finite = logical_and(above, lt(s, end)), pole = logical_and(logical_and(le(q, zero), is_whole), eq(half, floor(half)));
      allowed = logical_and(finite, logical_and(lt(q, end), logical_or(gt(q, zero), between)));
      endless = logical_or(logical_and(eq(s, one), eq(q, q)), logical_and(finite, pole));
      vanishes = logical_and(above, eq(q, end));
    }
    Sum sum(Value s, Value q) const { return summed(select(allowed, s, like(s, 2)), select(allowed, q, like(q, 1))); }
  };
  static Value everywhere(Value s, Value q) {
    const Places at(s, q);
    Value known = logical_or(at.allowed, logical_or(at.endless, at.vanishes)), zero = like(s, 0);
    Value unknown = select(known, zero, s + q) * nan;  // so are its derivatives
    return select(at.allowed, at.sum(s, q).value, select(at.endless, like(s, infinity), select(at.vanishes, zero, unknown)));
  }
  static Value body(const Zeta&, Value s, Value q) {
    check_float(name, s);
    return cast(everywhere(cast(s, f64), cast(q, f64)), s.dtype());
  }
  /// Where it is no number, neither are its derivatives. (With `zeta` itself the rule would have no end where it is traced with its op.)
  static Values jvp(const Zeta&, In in, In y, In d) {
    Value s = cast(in[0], f64), q = cast(in[1], f64), value = cast(y[0], f64), is_nan = ne(value, value), total;
    if (d[0]) {
      const Places at(s, q);
      total = cast(d[0], f64) * select(at.allowed, at.sum(s, q).by_s, select(at.vanishes, like(s, 0), -value));
    }
    if (d[1]) {
      Value by_q = cast(d[1], f64) * select(is_nan, value, -s * everywhere(s + 1, q));
      total = total ? total + by_q : by_q;
    }
    return {cast(total, y[0].dtype())};
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, 1.4, 4, true, 2); }
};
const Op<Zeta> zeta_op;

// The two ranges of the fits of Bessel functions.
struct Ranges {
  static constexpr double border = 8;
  Value is_near, near, far, near_power, far_power;  // |x| in its range, elsewhere the border, and what each fit is a polynomial of
  explicit Ranges(Value v) {
    Value a = abs(v);
    is_near = le(a, like(a, border));
    near = select(is_near, a, like(a, border)), far = select(is_near, like(a, border), a);
    near_power = (near - 2) * 2 / (near + 4), far_power = 16 / far - 1;
  }
};

struct BesselI0e : UnaryFunction<BesselI0e> {
  static constexpr std::string_view name = "bessel_i0e";
  static constexpr std::string_view formula = "e^-|x| I0(x), I0 the modified Bessel function of order 0";
  static constexpr double low = -25, high = 25;
  static Value body(const BesselI0e&, Value x) {
    return in_f64(name, x, [](Value v) {
      const Ranges r(v);
      return select(r.is_near, horner(r.near_power, near_0) / sqrt(r.near + 1), horner(r.far_power, far_0) / sqrt(r.far));
    });
  }
  static Values jvp(const BesselI0e&, In x, In, In dx) {
    Value v = cast(x[0], f64);
    return times_in_f64(dx[0], bessel_i1e(v) - sign(v) * bessel_i0e(v));  // not y, which is rounded: they cancel
  }
};
const Op<BesselI0e> bessel_i0e_op;

struct BesselI1e : UnaryFunction<BesselI1e> {
  static constexpr std::string_view name = "bessel_i1e";
  static constexpr std::string_view formula = "e^-|x| I1(x), I1 the modified Bessel function of order 1";
  static constexpr double low = -25, high = 25;
  static Value body(const BesselI1e&, Value x) {
    return in_f64(name, x, [](Value v) {
      const Ranges r(v);
      return sign(v) * select(r.is_near, near(r, r.near), far(r));
    });
  }
  static Value near(const Ranges& r, Value factor) {
    Value end = r.near + 1, lost = r.near - (end - 1), rounded = factor * horner(r.near_power, near_1) / (end * sqrt(end));
    return fma(rounded, lost / end * -1.5, rounded);
  }
  static Value far(const Ranges& r) { return horner(r.far_power, far_1) / sqrt(r.far); }
  /// i1e(v) / v, whose own derivative subtracts nothing near 0.
  static Value ratio(Value v) {
    const Ranges r(v);
    return select(r.is_near, near(r, like(v, 1)), far(r) / r.far);
  }
  static Values jvp(const BesselI1e&, In x, In, In dx) {
    Value v = cast(x[0], f64);
    return times_in_f64(dx[0], bessel_i0e(v) - ratio(v) - sign(v) * bessel_i1e(v));
  }
};
const Op<BesselI1e> bessel_i1e_op;

}  // namespace

/// log |gamma(x)|: infinity at 0, -1, -2, ... and at both infinities. Its derivative is digamma. Throws Error when x is no float.
Value lgamma(Operand x) { return lgamma_op({}, x); }
/// The derivative of log |gamma(x)|; NaN at 0, -1, -2, .... Its derivative is zeta(2, x) for x > 0. Throws Error when x is no float.
Value digamma(Operand x) { return digamma_op({}, x); }
/// Hurwitz's zeta function, the sum over k >= 0 of (q + k)^-s, differentiable in both; s and q broadcast. Infinity at s = 1, NaN for s < 1.
/// For q <= 0 NaN but where s is whole: infinity at 0, -1, ... for even s, the sum between them down to -10. Riemann's zeta is zeta(s, 1),
/// and the n-th derivative of digamma (-1)^(n + 1) n! zeta(n + 1, x). Throws Error when they are no floats.
Value zeta(Operand s, Operand q) {
  std::tie(s, q) = match("zeta", s, q);
  return zeta_op({}, s, q);
}
/// e^-|x| I0(x), the modified Bessel function of order 0 scaled so that it does not overflow. Throws Error when x is no float.
Value bessel_i0e(Operand x) { return bessel_i0e_op({}, x); }
/// e^-|x| I1(x), the modified Bessel function of order 1 scaled so that it does not overflow. Throws Error when x is no float.
Value bessel_i1e(Operand x) { return bessel_i1e_op({}, x); }

}  // namespace rlx
