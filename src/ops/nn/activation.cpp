// Activation functions.
#include <algorithm>
#include <numbers>
#include <utility>
#include <vector>

#include "ops/scalar/function.h"
#include "ops/scalar/horner.h"
#include "ops/scalar/normal_tail.h"

namespace rlx {
namespace {

constexpr double gelu_cubic = 0.044715;
constexpr double selu_alpha = 1.6732632423543772, selu_scale = 1.0507009873554805;

/// What activations without attributes share.
template <class Self>
struct Activation {
  static constexpr OpKind kind = OpKind::composite;
  static auto fields() { return Fields<>{}; }
  static std::vector<Sample> samples() { return elementwise_samples({}, -4, 4); }
};
using In = std::span<const Value>;

struct Relu : Activation<Relu> {
  static constexpr std::string_view name = "relu";
  static constexpr std::string_view formula = "max(x, 0); derivative 0 at 0";
  static Value body(const Relu&, Value x) { return max(x, like(x, 0)); }
  static Values jvp(const Relu&, In x, In, In dx) { return {select(gt(x[0], like(x[0], 0)), dx[0], like(dx[0], 0))}; }
  static std::vector<Sample> samples() { return samples_around({}, -3, 0, 3); }
};
const Op<Relu> relu_op;

struct Relu6 : Activation<Relu6> {
  static constexpr std::string_view name = "relu6";
  static constexpr std::string_view formula = "min(max(x, 0), 6); derivative 0 at 0 and 6";
  static Value body(const Relu6&, Value x) { return min(max(x, like(x, 0)), like(x, 6)); }
  static Values jvp(const Relu6&, In x, In, In dx) {
    Value inside = logical_and(gt(x[0], like(x[0], 0)), lt(x[0], like(x[0], 6)));
    return {select(inside, dx[0], like(dx[0], 0))};
  }
  static std::vector<Sample> samples() {
    auto all = samples_around({}, -3, 0, 5.9), upper = samples_around({}, 0.1, 6, 9);
    all.insert(all.end(), upper.begin(), upper.end());
    return all;
  }
};
const Op<Relu6> relu6_op;

struct LeakyRelu {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "leaky_relu";
  static constexpr std::string_view formula = "x where x > 0, else slope * x";
  double slope = 0.01;
  static auto fields() { return Fields<&LeakyRelu::slope>{}; }
  static Value body(const LeakyRelu& op, Value x) {
    return in_wide(name, x, [&](Value v) { return select(gt(v, like(v, 0)), v, v * op.slope); });
  }
  static std::vector<Sample> samples() { return samples_around(attrs_of(LeakyRelu{0.2}), -3, 0, 3); }
};
const Op<LeakyRelu> leaky_relu_op;

struct Elu {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "elu";
  static constexpr std::string_view formula = "x where x > 0, else alpha * (e^x - 1)";
  double alpha = 1;
  static auto fields() { return Fields<&Elu::alpha>{}; }
  static Value body(const Elu& op, Value x) {
    return in_wide(name, x, [&](Value v) {
      Value positive = gt(v, like(v, 0));
      Value safe = select(positive, like(v, 0), v);  // keeps e^x finite in the branch that is not taken
      return select(positive, v, expm1(safe) * op.alpha);
    });
  }
  static std::vector<Sample> samples() { return samples_around(attrs_of(Elu{1.3}), -4, 0, 3); }
};
const Op<Elu> elu_op;

struct Selu : Activation<Selu> {
  static constexpr std::string_view name = "selu";
  static constexpr std::string_view formula = "1.0507 * elu(x, 1.6733) (Klambauer et al. 2017)";
  static Value body(const Selu&, Value x) {
    return in_wide(name, x, [](Value v) { return elu(v, selu_alpha) * selu_scale; });
  }
  static std::vector<Sample> samples() { return samples_around({}, -4, 0, 3); }
};
const Op<Selu> selu_op;

struct Sigmoid : Activation<Sigmoid> {
  static constexpr std::string_view name = "sigmoid";
  static constexpr std::string_view formula = "1 / (1 + e^-x)";
  static Value body(const Sigmoid&, Value x) {
    const auto by_exp = [](Value v) { return 1 / (exp(-v) + 1); };  // e^-x = infinity gives 0, as it should
    return in_wide_or_complex(name, x, by_exp, by_exp);
  }
  // From y: the derivative of the body would divide infinities where x is very negative.
  static Values jvp(const Sigmoid&, In, In y, In dx) { return {dx[0] * (y[0] * (1 - y[0]))}; }
};
const Op<Sigmoid> sigmoid_op;

struct Softplus : Activation<Softplus> {
  static constexpr std::string_view name = "softplus";
  static constexpr std::string_view formula = "log(1 + e^x), as max(x, 0) + log1p(e^-|x|)";
  static Value body(const Softplus&, Value x) {
    return in_wide(name, x, [](Value v) { return max(v, like(v, 0)) + log1p(exp(-abs(v))); });
  }
  static Values jvp(const Softplus&, In x, In, In dx) { return {dx[0] * sigmoid(x[0])}; }
};
const Op<Softplus> softplus_op;

struct LogSigmoid : Activation<LogSigmoid> {
  static constexpr std::string_view name = "log_sigmoid";
  static constexpr std::string_view formula = "log(sigmoid(x)), as min(x, 0) - log1p(e^-|x|)";
  static Value body(const LogSigmoid&, Value x) {
    return in_wide(name, x, [](Value v) { return min(v, like(v, 0)) - log1p(exp(-abs(v))); });
  }
  static Values jvp(const LogSigmoid&, In x, In, In dx) { return {dx[0] * sigmoid(-x[0])}; }
};
const Op<LogSigmoid> log_sigmoid_op;

// Below `far` e^v is so small that 1 + e^v is 1, and v e^v may be a normal number where e^v is none: e^(v + 16), an exact sum, stands for
// e^v, and its e^-16 is multiplied in at the end.
constexpr double far = -64, shift = 16, shift_power = 1.1253517471925912e-07;

// v * sigmoid(m + low), where |low| is below a few units in the last place of m.
Value times_sigmoid(Value v, Value m, Value low = {}) {
  Value is_far = lt(m, like(m, far)), power = exp(select(is_far, -shift - m, -m));
  if (low) power = power * (1 - low);
  return v * select(is_far, like(v, shift_power), like(v, 1)) / (power + 1);
}

Value at_most(Value v, double limit) { return select(gt(v, like(v, limit)), like(v, limit), v); }  // NaN stays
Value bounded(Value v, double limit) { return at_most(select(lt(v, like(v, -limit)), like(v, -limit), v), limit); }
/// Beyond it the slopes of sigmoids and tanh are 0 to the last bit, but v times such a slope, when that is rounded, need not be.
constexpr double flat = 750;

struct Silu : Activation<Silu> {
  static constexpr std::string_view name = "silu";
  static constexpr std::string_view formula = "x * sigmoid(x)";
  static Value body(const Silu&, Value x) {
    return in_wide(name, x, [](Value v) { return times_sigmoid(v, v); });
  }
  static Values jvp(const Silu&, In x, In, In dx) {
    Value v = widen(x[0]), s = sigmoid(v);
    return times(dx[0], s * (bounded(v, flat) * sigmoid(-v) + 1));
  }
};
const Op<Silu> silu_op;

struct Gelu : Activation<Gelu> {
  static constexpr std::string_view name = "gelu";
  static constexpr std::string_view formula = "x / 2 * (1 + erf(x / sqrt 2))";
  static Value body(const Gelu&, Value x) {
    return in_wide(name, x, [](Value v) {
      Value a = abs(v), tail = NormalTail{.rate = 0.5, .factor = 1}.of(a, a);
      return select(lt(v, like(v, 0)), v * 0, v) - tail;  // -infinity * 0 is NaN, as the formula's
    });
  }
  static Values jvp(const Gelu&, In x, In, In dx) {
    Value v = widen(x[0]), near = bounded(v, flat);
    Value density = exp(square(near) * -0.5) * (0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
    return times(dx[0], erfc(v * (-1 / std::numbers::sqrt2)) * 0.5 + near * density);
  }
};
const Op<Gelu> gelu_op;

struct GeluTanh : Activation<GeluTanh> {
  static constexpr std::string_view name = "gelu_tanh";
  static constexpr std::string_view formula = "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))";
  // (1 + tanh(m / 2)) / 2 = sigmoid(m), m = v (linear + cubic v^2), each factor in two parts, as the tail multiplies the error of m by m.
  struct Factor {
    double high, low;
    Factor(DType t, double nearest, double rest) : high(nearest), low(rest) {
      if (t == f64) return;
      high = static_cast<float>(nearest);
      low = nearest - high;
    }
  };
  static Value body(const GeluTanh&, Value x) {
    return in_wide(name, x, [](Value v) {
      const Factor linear(v.dtype(), 1.5957691216057308, -9.9693088091109203e-17);
      const Factor cubic(v.dtype(), 0.071354816272600249, -6.1751499181553155e-19);
      Value a = bounded(v, 40), square = a * a, square_low = fma(a, a, -square);  // at 40 m is 4600
      Value bent = square * cubic.high, bent_low = fma(square, like(v, cubic.high), -bent);
      bent_low = fma(square_low, like(v, cubic.high), fma(square, like(v, cubic.low), bent_low));
      Value slope = bent + linear.high, back = slope - bent;  // Knuth's sum of two without error
      Value slope_low = ((bent - (slope - back)) + (linear.high - back)) + (bent_low + linear.low);
      Value m = a * slope;
      return times_sigmoid(v, m, fma(a, slope_low, fma(a, slope, -m)));
    });
  }
  static Values jvp(const GeluTanh&, In x, In, In dx) {
    Value v = widen(x[0]), a = bounded(v, 40), m = a * (square(a) * (1.5957691216057308 * gelu_cubic) + 1.5957691216057308);
    Value slope = square(a) * (3 * 1.5957691216057308 * gelu_cubic) + 1.5957691216057308, s = sigmoid(m);
    return times(dx[0], s * (a * slope * sigmoid(-m) + 1));
  }
};
const Op<GeluTanh> gelu_tanh_op;

struct Mish : Activation<Mish> {
  static constexpr std::string_view name = "mish";
  static constexpr std::string_view formula = "x * tanh(softplus(x))";
  static constexpr double end = 40;  // tanh(softplus(end)) is 1 to the last bit
  static Value body(const Mish&, Value x) {
    return in_wide(name, x, [](Value v) {
      // tanh(log(1 + e)) = n / (n + 2) for n = e (e + 2)
      Value is_far = lt(v, like(v, far)), e = exp(select(is_far, v + shift, at_most(v, end))), n = e * (e + 2);
      return v * (n / (n + 2)) * select(is_far, like(v, shift_power), like(v, 1));
    });
  }
  static Values jvp(const Mish&, In x, In, In dx) {
    Value v = at_most(bounded(widen(x[0]), flat), end), e = exp(v), n = e * (e + 2), below = n + 2;
    return times(dx[0], n / below + v * (e / below) * ((e + 1) / below) * 4);
  }
};
const Op<Mish> mish_op;

struct HardSigmoid : Activation<HardSigmoid> {
  static constexpr std::string_view name = "hardsigmoid";
  static constexpr std::string_view formula = "relu6(x + 3) / 6";
  static Value body(const HardSigmoid&, Value x) {
    return in_wide(name, x, [](Value v) { return relu6(v + 3) / 6; });
  }
  static std::vector<Sample> samples() { return samples_around({}, -2.9, 3, 5); }
};
const Op<HardSigmoid> hardsigmoid_op;

struct HardSwish : Activation<HardSwish> {
  static constexpr std::string_view name = "hardswish";
  static constexpr std::string_view formula = "x * relu6(x + 3) / 6";
  static Value body(const HardSwish&, Value x) {
    return in_wide(name, x, [](Value v) { return v * (relu6(v + 3) / 6); });  // in this order no product is larger than x
  }
  static Values jvp(const HardSwish&, In x, In, In dx) {
    Value v = widen(x[0]), moved = v + 3, inside = logical_and(gt(moved, like(v, 0)), lt(moved, like(v, 6)));
    return times(dx[0], relu6(moved) / 6 + select(inside, v / 6, like(v, 0)));
  }
  static std::vector<Sample> samples() { return samples_around({}, -5, -3, 2.9); }
};
const Op<HardSwish> hardswish_op;

struct Softsign : Activation<Softsign> {
  static constexpr std::string_view name = "softsign";
  static constexpr std::string_view formula = "x / (1 + |x|)";
  static Value body(const Softsign&, Value x) {
    return in_wide(name, x, [](Value v) { return v / (abs(v) + 1); });
  }
  static Values jvp(const Softsign&, In x, In, In dx) { return times(dx[0], square(1 / (abs(widen(x[0])) + 1))); }
};
const Op<Softsign> softsign_op;

struct Tanhshrink : Activation<Tanhshrink> {
  static constexpr std::string_view name = "tanhshrink";
  static constexpr std::string_view formula = "x - tanh(x)";
  static Value body(const Tanhshrink&, Value x) {
    return in_wide(name, x, [](Value v) {
      Value near = lt(abs(v), like(v, border)), small = select(near, v, like(v, 0)), z = small * small;
      const auto [top, below] = fraction(v.dtype() == f64 ? 12 : 7);
      return select(near, small * z * horner(z, top) / horner(z, below), v - tanh(v));
    });
  }
  static constexpr double border = 1.5;  // above it v - tanh(v) is more than a third of v
  /// (v - tanh v) / v^3 as a fraction of polynomials in v^2, of which all terms are positive: `depth` steps of Lambert's
  /// tanh v = v / (1 + v^2 / (3 + v^2 / (5 + ...))).
  static std::pair<std::vector<double>, std::vector<double>> fraction(int depth) {
    std::vector<double> below{1}, top;  // of (2 k + 1) + v^2 / (2 k + 3 + ...)
    for (int k = depth;; --k) {
      std::vector<double> next(std::max(below.size(), top.size() + 1), 0);
      for (std::size_t i = 0; i < below.size(); ++i) next[i] += (2 * k + 1) * below[i];
      for (std::size_t i = 0; i < top.size(); ++i) next[i + 1] += top[i];
      if (k == 0) return {top, next};
      top = std::exchange(below, next);
    }
  }
  static Values jvp(const Tanhshrink&, In x, In, In dx) { return times(dx[0], square(tanh(widen(x[0])))); }
};
const Op<Tanhshrink> tanhshrink_op;

struct Prelu : Activation<Prelu> {
  static constexpr std::string_view name = "prelu";
  static constexpr std::string_view formula = "x where x > 0, else slope * x, with a slope for each element";
  static Value body(const Prelu&, Value x, Value slope) { return select(gt(x, like(x, 0)), x, x * slope); }
  static std::vector<Sample> samples() {
    return {{{{{f32, {2, 3, 4}}, -3, -0.05}, {{f32, {2, 3, 4}}}}, {}, 1e-6},
            {{{{f64, {4}}, 0.05, 3}, {{f64, {4}}}}, {}, 1e-6},
            {{{{bf16, {4}}}, {{bf16, {4}}}}, {}, 0, false}};
  }
};
const Op<Prelu> prelu_op;

}  // namespace

/// max(x, 0). Derivative 0 at 0.
Value relu(Operand x) { return relu_op({}, x); }
/// x clamped to 0..6. Derivative 0 at both ends.
Value relu6(Operand x) { return relu6_op({}, x); }
/// x where it is positive, else slope * x.
Value leaky_relu(Operand x, double slope /*= 0.01*/) { return leaky_relu_op({slope}, x); }
/// x where it is positive, else slope * x; `slope` is learned and broadcasts with x (reshape a slope per channel to [C, 1, 1]).
Value prelu(Operand x, Operand slope) {
  std::tie(x, slope) = match("prelu", x, slope);
  return prelu_op({}, x, slope);
}
/// x where it is positive, else alpha * (e^x - 1).
Value elu(Operand x, double alpha /*= 1*/) { return elu_op({alpha}, x); }
/// The self-normalising elu, with Klambauer's two constants.
Value selu(Operand x) { return selu_op({}, x); }
/// 1 / (1 + e^-x).
Value sigmoid(Operand x) { return sigmoid_op({}, x); }
/// log(1 + e^x), without overflow.
Value softplus(Operand x) { return softplus_op({}, x); }
/// log(sigmoid(x)), without underflow.
Value log_sigmoid(Operand x) { return log_sigmoid_op({}, x); }
/// x * sigmoid(x), also called swish.
Value silu(Operand x) { return silu_op({}, x); }
/// The Gaussian error linear unit, by the error function.
Value gelu(Operand x) { return gelu_op({}, x); }
/// The tanh approximation of gelu.
Value gelu_tanh(Operand x) { return gelu_tanh_op({}, x); }
/// x * tanh(softplus(x)).
Value mish(Operand x) { return mish_op({}, x); }
/// relu6(x + 3) / 6.
Value hardsigmoid(Operand x) { return hardsigmoid_op({}, x); }
/// x * relu6(x + 3) / 6.
Value hardswish(Operand x) { return hardswish_op({}, x); }
/// x / (1 + |x|).
Value softsign(Operand x) { return softsign_op({}, x); }
/// x - tanh(x).
Value tanhshrink(Operand x) { return tanhshrink_op({}, x); }

}  // namespace rlx
