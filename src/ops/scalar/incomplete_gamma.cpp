// The incomplete gamma functions, by one quadrature that the graph holds as a sum over an axis of nodes.
#include <array>
#include <numbers>

#include "ops/scalar/horner.h"
#include "ops/scalar/quadrature.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

// x^a e^-x / gamma(a), or that with x^(a - less), less 0 or 1. Where a is large the terms of its logarithm cancel: there x = a (1 + m),
// and gamma by Stirling's series.
Value power_over_gamma(Value a, Value x, int less = 0) {
  constexpr double border = 16;
  constexpr std::array<double, 6> stirling{1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
  constexpr std::array<double, 11> odd{2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                                       2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  Value large = gt(a, like(a, border)), b = select(large, a, like(a, border)), z = select(large, x, b), m = (z - b) / b;
  // log(1 + m) - m, near 0 by log(1 + m) = 2 atanh(r), r = m / (2 + m).
  Value near = lt(abs(m), like(m, 0.3)), small = select(near, m, like(m, 0)), r = small / (small + 2), square_r = square(r);
  Value by_series = r * (square_r * horner(square_r, odd) - small), by_log = log(select(near, like(z, 1), z / b)) - m;
  Value inverse = 1 / b, correction = inverse * horner(square(inverse), stirling);
  Value of_large = sqrt(b * (0.5 / std::numbers::pi)) * exp(b * select(near, by_series, by_log) - correction);
  return select(large, less == 0 ? of_large : of_large / z, exp((a - less) * log(x) - x - lgamma(a)));
}

// With t = x e^-s the integral over 0..x of t^(a-1) e^-t is x^a e^-x times that of e^(-a s + x (1 - e^-s)) over s in 0..infinity; with
// t = x e^s the integral over x..infinity is x^a e^-x times that of e^(a s - x (e^s - 1)). The first decays for x <= a, the second for
// x >= a. The other function is 1 less the one that decays.
struct GammaIntegral {
  Value below, factor, value, by_a;  // of the function that decays: factor * value, and d value / da
  GammaIntegral(Value a, Value x) : below(le(x, max(a, like(a, 1)))) {
    Value direction = select(below, like(a, -1), like(a, 1));
    // How fast the integrand decays: the scale of s. The integral does not depend on it, so no derivative needs to flow here.
    Value slow = select(gt(x, a), a, min(a, a - x + sqrt(min(x, a))));
    Value rate = stop_gradient(select(below, slow, x - a + sqrt(x)));
    const Quadrature rule(a);
    Value s = Quadrature::over_nodes(direction / rate) * rule.nodes;
    Value terms = exp(Quadrature::over_nodes(a) * s - Quadrature::over_nodes(x) * expm1(s)) * rule.weights;
    factor = power_over_gamma(a, x), value = sum(terms, {-1}) / rate, by_a = sum(terms * s, {-1}) / rate;
  }
};

/// Where 0 < a and 0 < x, both finite; elsewhere other numbers that are.
struct GammaRegular {
  Value is_regular, a, x;
  GammaRegular(Value all_a, Value all_x) {
    auto inside = [](Value v) { return logical_and(gt(v, like(v, 0)), lt(v, like(v, infinity))); };
    is_regular = logical_and(inside(all_a), inside(all_x));
    a = select(is_regular, all_a, like(all_a, 1)), x = select(is_regular, all_x, like(all_x, 1));
  }
};

template <bool upper>
struct IncompleteGamma {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = upper ? "igammac" : "igamma";
  static constexpr std::string_view formula = upper ? "1 / gamma(a) * integral of t^(a - 1) e^-t from x to infinity, operands a, x"
                                                    : "1 / gamma(a) * integral of t^(a - 1) e^-t from 0 to x, operands a, x";
  static auto fields() { return Fields<>{}; }
  static Value body(const IncompleteGamma&, Value a, Value x) {
    const DType dtype = x.dtype();
    check_float(name, x);
    a = cast(a, f64), x = cast(x, f64);
    const GammaRegular inside(a, x);
    const GammaIntegral integral(inside.a, inside.x);
    Value part = integral.factor * integral.value, zero = like(x, 0);
    Value regular = select(upper ? integral.below : logical_not(integral.below), 1 - part, part);
    // P is 1 at x = infinity, else 0 at a = infinity and x = 0, else 1 at a = 0; NaN is neither.
    Value all = logical_or(eq(x, like(x, infinity)), logical_and(eq(a, zero), gt(x, zero)));
    Value none = logical_or(eq(a, like(a, infinity)), logical_and(eq(x, zero), gt(a, zero)));
    Value allowed = logical_and(ge(a, zero), ge(x, zero)), border = select(none, like(x, upper ? 1 : 0), like(x, nan));
    border = select(allowed, select(all, like(x, upper ? 0 : 1), border), like(x, nan));
    return cast(select(inside.is_regular, regular, border), dtype);
  }
  /// The density x^(a - 1) e^-x / gamma(a) by x, at 0 its limit; by a as the integral changes. At other borders 0.
  static Values jvp(const IncompleteGamma&, In in, In y, In d) {
    Value a = cast(in[0], f64), x = cast(in[1], f64), total;
    const GammaRegular inside(a, x);
    const GammaIntegral integral(inside.a, inside.x);
    Value invalid = select(ne(cast(y[0], f64), cast(y[0], f64)), like(x, nan), like(x, 0));
    if (d[0]) {
      Value slope = integral.factor * ((log(inside.x) - digamma(inside.a)) * integral.value + integral.by_a);
      slope = select(integral.below, slope, -slope);
      total = cast(d[0], f64) * select(inside.is_regular, slope, invalid);
    }
    if (d[1]) {
      Value slope = power_over_gamma(inside.a, inside.x, 1), one = like(a, 1);
      Value at_zero = select(lt(a, one), like(a, infinity), select(eq(a, one), one, like(a, 0)));
      Value border = select(logical_and(eq(x, like(x, 0)), gt(a, like(a, 0))), at_zero, invalid);
      Value by_x = cast(d[1], f64) * select(inside.is_regular, slope, border);
      total = total ? total + by_x : by_x;
    }
    return {cast(upper ? -total : total, y[0].dtype())};
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, 0.3, 6, true, 2); }
};
const Op<IncompleteGamma<false>> igamma_op;
const Op<IncompleteGamma<true>> igammac_op;

}  // namespace

/// The regularized lower incomplete gamma function P(a, x): 1 / gamma(a) times the integral of t^(a - 1) e^-t over 0..x. a and x broadcast;
/// NaN where one is negative or both are 0; 1 at x = infinity, else 0 at a = infinity. Differentiable in both. Relative error 1e-13, for a
/// above 100 1e-15 a. Throws Error when they are no floats.
Value igamma(Operand a, Operand x) {
  std::tie(a, x) = match("igamma", a, x);
  return igamma_op({}, a, x);
}
/// The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), as igamma; its relative error holds for x > 1 and x > a, below
/// it is that of P.
Value igammac(Operand a, Operand x) {
  std::tie(a, x) = match("igammac", a, x);
  return igammac_op({}, a, x);
}

}  // namespace rlx
