// The regularized incomplete beta function, by the quadrature of the incomplete gamma functions.
#include <limits>

#include "ops/scalar/quadrature.h"

namespace rlx {
namespace {

// x and y = 1 - x with their logarithms, so that neither loses digits near 0.
struct Share {
  Value x, y, log_x, log_y;
};

// With t = x e^-s the integral over 0..x of t^(a-1) (1-t)^(b-1) is x^a y^(b-1) times that of e^(-a s) (1 + (1 - e^-s) x / y)^(b-1) over s
// in 0..infinity, which decays for x <= a / (a + b).
Value below_mean(Value a, Value b, const Share& p) {
  const Value one = like(a, 1), odds = p.x / p.y, rest = b - 1, is_bell = gt(b, one);
  // How fast it decays: for b <= 1 as e^(-a s) or, at first, faster; else as a bell whose top may lie at s = 0.
  const Value at_start = a - rest * odds, width = sqrt(max(rest, like(a, 0)) * odds / p.y);
  const Value rate = stop_gradient(select(is_bell, min(a, max(at_start, like(a, 0)) + width), a));
  const Quadrature rule(a);
  const auto over_nodes = Quadrature::over_nodes;
  const Value s = over_nodes(1 / rate) * rule.nodes;
  const Value decay = exp(over_nodes(rest) * log1p(-(over_nodes(odds) * expm1(-s))) - over_nodes(a) * s);
  const Value log_beta = lgamma(a) + lgamma(b) - lgamma(a + b);
  return exp(a * p.log_x + rest * p.log_y - log_beta) * (sum(decay * rule.weights, {-1}) / rate);
}

// For 0 < a, 0 < b and 0 < x < 1, all finite. Above the mean it is 1 less the same with a and b, and x and 1 - x, exchanged.
Value regularized(Value a, Value b, Value x) {
  const Value turned = gt(x * (a + b), a), y = 1 - x, log_x = log(x), log_y = log1p(-x);
  const auto either = [&](Value v, Value w) { return select(turned, w, v); };
  const Value part = below_mean(either(a, b), either(b, a), {either(x, y), either(y, x), either(log_x, log_y), either(log_y, log_x)});
  return select(turned, 1 - part, part);
}

struct IncompleteBeta {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "betainc";
  static constexpr std::string_view formula =
      "gamma(a + b) / (gamma(a) gamma(b)) * integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, operands a, b, x";
  static auto fields() { return Fields<>{}; }
  static Value body(const IncompleteBeta&, Value a, Value b, Value x) {
    const DType dtype = x.dtype();
    check_float(name, x);
    a = cast(a, f64), b = cast(b, f64), x = cast(x, f64);
    const Value zero = like(x, 0), one = like(x, 1);
    const auto inside = [&](Value v, double end) { return logical_and(gt(v, zero), lt(v, like(v, end))); };
    const Value allowed = logical_and(inside(a, infinity), inside(b, infinity)), regular = logical_and(allowed, inside(x, 1));
    const Value at_end = logical_and(allowed, logical_or(eq(x, zero), eq(x, one)));
    const auto safe = [&](Value v, double other) { return select(regular, v, like(v, other)); };
    const Value irregular = select(at_end, x, like(x, std::numeric_limits<double>::quiet_NaN()));
    return cast(select(regular, regularized(safe(a, 1), safe(b, 1), safe(x, 0.5)), irregular), dtype);
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, 0.1, 0.9, true, 3); }
};
const Op<IncompleteBeta> betainc_op;

}  // namespace

/// The regularized incomplete beta function I_x(a, b): gamma(a + b) / (gamma(a) gamma(b)) times the integral of t^(a - 1) (1 - t)^(b - 1)
/// over 0..x; a, b and x broadcast. NaN unless a and b are positive and finite and x lies in 0..1. Differentiable in all three, x inside.
/// Relative error 1e-13, for a + b above 100 1e-15 (a + b), up to the mean x = a / (a + b); above it that is the error of 1 - I_x(a, b).
/// Throws Error when they are no floats.
Value betainc(Operand a, Operand b, Operand x) {
  std::tie(a, b) = match("betainc", a, b);
  std::tie(a, x) = match("betainc", a, x);
  std::tie(b, x) = match("betainc", b, x);
  return betainc_op({}, a, b, x);
}

}  // namespace rlx
