// Special functions: the logarithm of gamma and its derivative, Hurwitz's zeta, Bessel functions. Their series cancel near the zeros of
// the results, which would leave f32 no digits: every dtype is computed in f64 and rounded once.
#include <array>
#include <cmath>
#include <numbers>

#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;
using std::numbers::pi;

// Bernoulli's numbers B2, B4, ... B16: with arguments from `shift` on, the first one left out is below 1e-17 of the result.
constexpr std::array<double, 8> bernoulli{1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510};
constexpr int shift = 10;

template <class Body>
Value in_f64(std::string_view op, Value x, Body body) {
  check_float(op, x);
  return cast(body(cast(x, f64)), x.dtype());
}
// The tangent of op's operand times `slope`.
Values times_in_f64(Value dx, Value slope) { return {cast(cast(dx, f64) * slope, dx.dtype())}; }

// coefficients[0] + coefficients[1] * x + ...
Value polynomial(Value x, std::span<const double> coefficients) {
  Value y = like(x, coefficients.back());
  for (std::size_t i = coefficients.size() - 1; i-- > 0;) y = y * x + coefficients[i];
  return y;
}

// Both sides of 0, where gamma has poles at the integers.
std::vector<Sample> around_poles() {
  auto all = elementwise_samples({}, 0.2, 14);
  auto negative = elementwise_samples({}, -2.8, -2.2);
  all.insert(all.end(), negative.begin(), negative.end());
  return all;
}

struct LogGamma {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "lgamma";
  static constexpr std::string_view formula = "log |gamma(x)|; infinity at 0, -1, -2, ...; derivative digamma(x)";
  static auto fields() { return Fields<>{}; }
  /// Of v >= shift: Stirling's series (Abramowitz and Stegun 6.1.40).
  static Value large(Value v) {
    std::array<double, bernoulli.size()> terms;
    for (std::size_t k = 1; k <= terms.size(); ++k) terms[k - 1] = bernoulli[k - 1] / static_cast<double>(2 * k * (2 * k - 1));
    Value inverse = 1 / v, series = inverse * polynomial(inverse * inverse, terms);
    return (v - 0.5) * (log(v) - 1) + ((0.5 * std::log(2 * pi) - 0.5) + series);
  }
  /// (zeta(k) - 1) / k for k >= 2: the sum up to 100, the rest by Euler and Maclaurin.
  static double taylor_coefficient(int k) {
    constexpr double end = 100;
    double total = std::pow(end, 1 - k) / (k - 1) + std::pow(end, -k) / 2;
    total += k * std::pow(end, -k - 1) / 12 - k * (k + 1) * (k + 2) * std::pow(end, -k - 3) / 720;
    for (int n = 2; n < 100; ++n) total += std::pow(n, -k);
    return total / k;
  }
  static std::vector<double> taylor_series() {
    std::vector<double> terms{1 - std::numbers::egamma};
    for (int k = 2; k <= 28; ++k) terms.push_back((k % 2 == 0 ? 1 : -1) * taylor_coefficient(k));
    return terms;
  }
  /// Of 0.5 <= v <= 2.5, exact at the zeros 1 and 2: the Taylor series at 2 (Abramowitz and Stegun 6.1.33), below 1.5 less log(v).
  static Value near_zeros(Value v) {
    static const std::vector<double> terms = taylor_series();
    Value first = lt(v, like(v, 1.5)), distance = select(first, v - 1, v - 2), y = distance * polynomial(distance, terms);
    return select(first, y - log1p(select(first, distance, like(v, 0))), y);
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
  static Value body(const LogGamma&, Value x) {
    return in_f64(name, x, [](Value v) {
      Value reflect = lt(v, like(v, 0.5)), y = right_half(select(reflect, 1 - v, v)), whole = round(v);
      Value mirrored = std::log(pi) - log(abs(sin((v - whole) * pi))) - y;  // gamma(v) gamma(1 - v) = pi / sin(pi v)
      Value pole = logical_and(le(v, like(v, 0)), eq(v, whole));            // of -infinity too
      return select(pole, like(v, infinity), select(reflect, mirrored, y));
    });
  }
  static Values jvp(const LogGamma&, In x, In, In dx) { return times_in_f64(dx[0], digamma(cast(x[0], f64))); }
  static std::vector<Sample> samples() { return around_poles(); }
};
const Op<LogGamma> lgamma_op;

struct Digamma {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "digamma";
  static constexpr std::string_view formula = "the derivative of log |gamma(x)|; NaN at 0, -1, -2, ...";
  static auto fields() { return Fields<>{}; }
  /// Of v > 0: the asymptotic series at v + shift (Abramowitz and Stegun 6.3.18), less 1 / v + 1 / (v + 1) + ... + 1 / (v + shift - 1).
  static Value positive(Value v) {
    std::array<double, bernoulli.size()> terms;
    for (std::size_t k = 1; k <= terms.size(); ++k) terms[k - 1] = -bernoulli[k - 1] / static_cast<double>(2 * k);
    Value inverse = 1 / (v + shift), square = inverse * inverse;
    Value y = log(v + shift) - inverse * 0.5 + square * polynomial(square, terms);
    for (int k = 0; k < shift; ++k) y = y - 1 / (v + k);
    return y;
  }
  static Value body(const Digamma&, Value x) {
    return in_f64(name, x, [](Value v) {
      Value zero = like(v, 0), reflect = le(v, zero), fraction = v - round(v), pole = logical_and(reflect, eq(fraction, zero));
      Value angle = select(logical_and(reflect, ne(fraction, zero)), fraction * pi, like(v, 1));
      Value y = positive(select(reflect, 1 - v, v)), mirrored = y - cos(angle) / sin(angle) * pi;
      return select(pole, like(v, nan), select(reflect, mirrored, y));
    });
  }
  static std::vector<Sample> samples() { return around_poles(); }
};
const Op<Digamma> digamma_op;

struct Zeta {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "zeta";
  static constexpr std::string_view formula =
      "Hurwitz's zeta: the sum over k >= 0 of (q + k)^-s, operands s, q; infinity at s = 1, NaN for s < 1 or q <= 0";
  static auto fields() { return Fields<>{}; }
  /// The sum up to `shift`, the rest by Euler and Maclaurin's formula (DLMF 25.11.28 in the form of 2.10.1).
  static Value summed(Value s, Value q) {
    Value head = sum(pow(expand_dims(q, {-1}) + iota(q, {shift}, f64), -expand_dims(s, {-1})), {-1});
    Value z = q + shift, tail = z / (s - 1) + 0.5, factor = s / z;
    double factorial = 2;
    for (int k = 1; k <= static_cast<int>(bernoulli.size()); ++k) {
      tail = tail + factor * (bernoulli[static_cast<std::size_t>(k - 1)] / factorial);
      factor = factor * (s + (2 * k - 1)) * (s + 2 * k) / (z * z);
      factorial *= (2 * k + 1) * (2 * k + 2);
    }
    return head + pow(z, -s) * tail;
  }
  static Value body(const Zeta&, Value s, Value q) {
    const DType dtype = s.dtype();
    check_float(name, s);
    s = cast(s, f64), q = cast(q, f64);
    Value allowed = logical_and(ge(s, like(s, 1)), gt(q, like(q, 0)));
    Value y = summed(select(allowed, s, like(s, 2)), select(allowed, q, like(q, 1)));
    return cast(select(allowed, y, like(y, nan)), dtype);
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, 1.4, 4, true, 2); }
};
const Op<Zeta> zeta_op;

// I_order(v) e^-|v| of order 0 or 1 in f64: the power series up to |v| = 20 (all its terms have one sign), above it the asymptotic one
// (Abramowitz and Stegun 9.6.10, 9.7.1). The terms left out are below 1e-17.
Value scaled_bessel(int order, Value v) {
  constexpr double border = 20;
  std::vector<double> power{1}, asymptotic{1};
  for (int k = 1; k <= 36; ++k) power.push_back(power.back() / (k * (k + order)));
  for (int k = 1; k <= 26; ++k) asymptotic.push_back(asymptotic.back() * ((2 * k - 1) * (2 * k - 1) - 4 * order * order) / (8 * k));
  Value a = abs(v), near = le(a, like(a, border)), small = select(near, v, like(v, 1)), large = select(near, like(a, border), a);
  Value inner = exp(-abs(small)) * polynomial(small * small * 0.25, power);
  Value outer = polynomial(1 / large, asymptotic) / sqrt(large * (2 * pi));
  return order == 0 ? select(near, inner, outer) : select(near, small * 0.5 * inner, sign(v) * outer);
}

struct BesselI0e {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "bessel_i0e";
  static constexpr std::string_view formula = "e^-|x| I0(x), I0 the modified Bessel function of order 0";
  static auto fields() { return Fields<>{}; }
  static Value body(const BesselI0e&, Value x) {
    return in_f64(name, x, [](Value v) { return scaled_bessel(0, v); });
  }
  static Values jvp(const BesselI0e&, In x, In y, In dx) {
    Value v = cast(x[0], f64);
    return times_in_f64(dx[0], bessel_i1e(v) - sign(v) * cast(y[0], f64));
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, -25, 25); }
};
const Op<BesselI0e> bessel_i0e_op;

struct BesselI1e {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "bessel_i1e";
  static constexpr std::string_view formula = "e^-|x| I1(x), I1 the modified Bessel function of order 1";
  static auto fields() { return Fields<>{}; }
  static Value body(const BesselI1e&, Value x) {
    return in_f64(name, x, [](Value v) { return scaled_bessel(1, v); });
  }
  static Values jvp(const BesselI1e&, In x, In y, In dx) {
    Value v = cast(x[0], f64), z = cast(y[0], f64), zero = eq(v, like(v, 0));
    Value ratio = select(zero, like(v, 0.5), z / select(zero, like(v, 1), v));
    return times_in_f64(dx[0], bessel_i0e(v) - ratio - sign(v) * z);
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, -25, 25); }
};
const Op<BesselI1e> bessel_i1e_op;

}  // namespace

/// log |gamma(x)|: infinity at 0, -1, -2, ... and at both infinities. Computed in f64; near its zeros between negative integers
/// the absolute error is 1e-14. Its derivative is digamma. Throws Error when x is no float.
Value lgamma(Operand x) { return lgamma_op({}, x); }
/// The derivative of log |gamma(x)|; NaN at 0, -1, -2, .... Its derivative is zeta(2, x) for x > 0. Throws Error when x is no float.
Value digamma(Operand x) { return digamma_op({}, x); }
/// Hurwitz's zeta function, the sum over k >= 0 of (q + k)^-s, differentiable in both; s and q broadcast. Infinity at s = 1, NaN for s < 1
/// or q <= 0. Riemann's zeta is zeta(s, 1), and the n-th derivative of digamma (-1)^(n + 1) n! zeta(n + 1, x). Throws Error when they are
/// no floats.
Value zeta(Operand s, Operand q) {
  std::tie(s, q) = match("zeta", s, q);
  return zeta_op({}, s, q);
}
/// e^-|x| I0(x), the modified Bessel function of order 0 scaled so that it does not overflow. Throws Error when x is no float.
Value bessel_i0e(Operand x) { return bessel_i0e_op({}, x); }
/// e^-|x| I1(x), the modified Bessel function of order 1 scaled so that it does not overflow. Throws Error when x is no float.
Value bessel_i1e(Operand x) { return bessel_i1e_op({}, x); }

}  // namespace rlx
