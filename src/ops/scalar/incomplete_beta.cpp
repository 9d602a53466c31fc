// The regularized incomplete beta function, by the quadrature of the incomplete gamma functions.
#include "ops/scalar/quadrature.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

// x and y = 1 - x with their logarithms, so that neither loses digits near 0.
struct Share {
  Value x, y, log_x, log_y;
};

// With t = x e^-s the integral over 0..x of t^(a-1) (1-t)^(b-1) is x^a y^(b-1) times that of e^(-a s) (1 + (1 - e^-s) x / y)^(b-1) over s
// in 0..infinity, which decays for x <= a / (a + b). Divided by the complete one it is factor * value.
struct BetaIntegral {
  Value factor, value, by_a, by_b;  // and d value / da, d value / db
  BetaIntegral(Value a, Value b, const Share& p) {
    const Value one = like(a, 1), odds = p.x / p.y, rest = b - 1, is_bell = gt(b, one);
    // How fast it decays: for b <= 1 as e^(-a s) or, at first, faster; else as a bell whose top may lie at s = 0.
    const Value at_start = a - rest * odds, width = sqrt(max(rest, like(a, 0)) * odds / p.y);
    const Value rate = stop_gradient(select(is_bell, min(a, max(at_start, like(a, 0)) + width), a));
    const Quadrature rule(a);
    const auto over_nodes = Quadrature::over_nodes;
    const Value s = over_nodes(1 / rate) * rule.nodes, log_rest = log1p(-(over_nodes(odds) * expm1(-s)));
    const Value terms = exp(over_nodes(rest) * log_rest - over_nodes(a) * s) * rule.weights;
    const auto integrated = [&](Value v) { return sum(v, {-1}) / rate; };
    value = integrated(terms), by_a = integrated(-(terms * s)), by_b = integrated(terms * log_rest);
    const Value log_beta = lgamma(a) + lgamma(b) - lgamma(a + b);
    factor = exp(a * p.log_x + rest * p.log_y - log_beta);
  }
};

// Where 0 < a, 0 < b and 0 < x < 1, all finite; elsewhere other numbers that are. Above the mean x = a / (a + b) the function is 1 less the
// same with a and b, and x and 1 - x, exchanged.
struct BetaRegular {
  Value is_regular, turned, a, b;
  Share share;
  BetaRegular(Value all_a, Value all_b, Value all_x) {
    const auto inside = [](Value v, double end) { return logical_and(gt(v, like(v, 0)), lt(v, like(v, end))); };
    is_regular = logical_and(logical_and(inside(all_a, infinity), inside(all_b, infinity)), inside(all_x, 1));
    const auto safe = [&](Value v, double other) { return select(is_regular, v, like(v, other)); };
    const Value a_given = safe(all_a, 1), b_given = safe(all_b, 1), x = safe(all_x, 0.5);
    turned = gt(x * (a_given + b_given), a_given);
    const Value y = 1 - x, log_x = log(x), log_y = log1p(-x);
    a = either(a_given, b_given), b = either(b_given, a_given);
    share = {either(x, y), either(y, x), either(log_x, log_y), either(log_y, log_x)};
  }
  Value either(Value v, Value w) const { return select(turned, w, v); }
};

struct IncompleteBeta {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "betainc";
  static constexpr std::string_view formula =
      "gamma(a + b) / (gamma(a) gamma(b)) * integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, operands a, b, x";
  static auto fields() { return Fields<>{}; }
  /// All of the integral lies at t = 0 where a is 0 or b infinite, and at t = 1 where b is 0 or a infinite.
  static Value border(Value a, Value b, Value x) {
    const Value zero = like(x, 0), one = like(x, 1), end = like(x, infinity);
    const Value at_zero = logical_or(eq(a, zero), eq(b, end)), at_one = logical_or(eq(b, zero), eq(a, end));
    const Value allowed = logical_and(logical_and(ge(a, zero), ge(b, zero)), logical_and(ge(x, zero), le(x, one)));
    const Value share = select(at_zero, cast(gt(x, zero), f64), select(at_one, cast(ge(x, one), f64), x));
    return select(logical_and(allowed, logical_not(logical_and(at_zero, at_one))), share, like(x, nan));
  }
  static Value body(const IncompleteBeta&, Value a, Value b, Value x) {
    const DType dtype = x.dtype();
    check_float(name, x);
    a = cast(a, f64), b = cast(b, f64), x = cast(x, f64);
    const BetaRegular inside(a, b, x);
    const BetaIntegral integral(inside.a, inside.b, inside.share);
    const Value part = integral.factor * integral.value;
    return cast(select(inside.is_regular, select(inside.turned, 1 - part, part), border(a, b, x)), dtype);
  }
  /// By x the density, at 0 and 1 its limit; by a and b as the integral changes. At other borders 0.
  static Values jvp(const IncompleteBeta&, In in, In y, In d) {
    const Value a = cast(in[0], f64), b = cast(in[1], f64), x = cast(in[2], f64), result = cast(y[0], f64);
    const BetaRegular inside(a, b, x);
    const Share& p = inside.share;
    const BetaIntegral integral(inside.a, inside.b, p);
    const Value invalid = select(ne(result, result), like(x, nan), like(x, 0)), both = digamma(inside.a + inside.b);
    const auto by = [&](Value log_part, Value shape, Value change) {
      const Value slope = integral.factor * ((log_part - digamma(shape) + both) * integral.value + change);
      return select(inside.turned, -slope, slope);
    };
    Value total;
    const auto add = [&](Value tangent, Value slope, Value at_border) {
      const Value more = cast(tangent, f64) * select(inside.is_regular, slope, at_border);
      total = total ? total + more : more;
    };
    const Value by_own = by(p.log_x, inside.a, integral.by_a), by_other = by(p.log_y, inside.b, integral.by_b);
    if (d[0]) add(d[0], inside.either(by_own, by_other), invalid);
    if (d[1]) add(d[1], inside.either(by_other, by_own), invalid);
    if (d[2]) add(d[2], integral.factor / p.x, density_at_end(a, b, x, invalid));
    return {cast(total, y[0].dtype())};
  }
  /// The density at x = 0: that of a = 1 is b, of a below it infinite, above it 0. At x = 1 likewise.
  static Value density_at_end(Value a, Value b, Value x, Value otherwise) {
    const Value zero = like(x, 0), one = like(x, 1), at_start = eq(x, zero);
    const auto inside = [&](Value v) { return logical_and(gt(v, zero), lt(v, like(v, infinity))); };
    const Value shape = select(at_start, a, b), other = select(at_start, b, a);
    const Value density = select(lt(shape, one), like(x, infinity), select(eq(shape, one), other, zero));
    const Value at_end = logical_and(logical_and(inside(a), inside(b)), logical_or(at_start, eq(x, one)));
    return select(at_end, density, otherwise);
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, 0.1, 0.9, true, 3); }
};
const Op<IncompleteBeta> betainc_op;

}  // namespace

/// The regularized incomplete beta function I_x(a, b): gamma(a + b) / (gamma(a) gamma(b)) times the integral of t^(a - 1) (1 - t)^(b - 1)
/// over 0..x; a, b and x broadcast. NaN where x lies outside of 0..1 or a or b is negative. Where a is 0 or b infinite all lies at 0, where
/// b is 0 or a infinite all lies at 1; both are NaN. Differentiable in all three.
/// Relative error 1e-13, for a + b above 100 1e-15 (a + b), up to the mean x = a / (a + b); above it that is the error of 1 - I_x(a, b).
/// Throws Error when they are no floats.
Value betainc(Operand a, Operand b, Operand x) {
  std::tie(a, b) = match("betainc", a, b);
  std::tie(a, x) = match("betainc", a, x);
  std::tie(b, x) = match("betainc", b, x);
  return betainc_op({}, a, b, x);
}

}  // namespace rlx
