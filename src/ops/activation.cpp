// Activation functions.
#include "ops/wide.h"

namespace rlx {
namespace {

constexpr double inv_sqrt2 = 0.7071067811865476, sqrt_2_over_pi = 0.7978845608028654, gelu_cubic = 0.044715;
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
    return in_wide(name, x, [](Value v) { return 1 / (exp(-v) + 1); });  // e^-x = infinity gives 0, as it should
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

struct Silu : Activation<Silu> {
  static constexpr std::string_view name = "silu";
  static constexpr std::string_view formula = "x * sigmoid(x)";
  static Value body(const Silu&, Value x) {
    return in_wide(name, x, [](Value v) { return v * sigmoid(v); });
  }
};
const Op<Silu> silu_op;

struct Gelu : Activation<Gelu> {
  static constexpr std::string_view name = "gelu";
  static constexpr std::string_view formula = "x / 2 * (1 + erf(x / sqrt 2))";
  static Value body(const Gelu&, Value x) {
    return in_wide(name, x, [](Value v) {
      const Value half = v * 0.5;  // named: the order of nodes, and with it that of sums in the derivative, is then the same everywhere
      return half * (erf(v * inv_sqrt2) + 1);
    });
  }
};
const Op<Gelu> gelu_op;

struct GeluTanh : Activation<GeluTanh> {
  static constexpr std::string_view name = "gelu_tanh";
  static constexpr std::string_view formula = "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))";
  static Value inner(Value v) { return v * (v * v * gelu_cubic + 1) * sqrt_2_over_pi; }
  static Value body(const GeluTanh&, Value x) {
    return in_wide(name, x, [](Value v) { return v * 0.5 * (tanh(inner(v)) + 1); });
  }
  static Values jvp(const GeluTanh&, In x, In, In dx) {
    Value v = widen(x[0]);
    Value t = tanh(inner(v));
    // Beyond 30 the tanh is flat to the last bit, and x^3 times its zero slope would be infinity times 0.
    Value bounded = max(min(v, like(v, 30)), like(v, -30));
    Value slope = bounded * (1 - t * t) * (bounded * bounded * (3 * gelu_cubic) + 1) * sqrt_2_over_pi;
    return {cast(widen(dx[0]) * ((t + 1) * 0.5 + slope * 0.5), dx[0].dtype())};
  }
};
const Op<GeluTanh> gelu_tanh_op;

struct Mish : Activation<Mish> {
  static constexpr std::string_view name = "mish";
  static constexpr std::string_view formula = "x * tanh(softplus(x))";
  static Value body(const Mish&, Value x) {
    return in_wide(name, x, [](Value v) { return v * tanh(softplus(v)); });
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
    return in_wide(name, x, [](Value v) { return v * relu6(v + 3) / 6; });
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
};
const Op<Softsign> softsign_op;

struct Tanhshrink : Activation<Tanhshrink> {
  static constexpr std::string_view name = "tanhshrink";
  static constexpr std::string_view formula = "x - tanh(x)";
  static Value body(const Tanhshrink&, Value x) {
    return in_wide(name, x, [](Value v) { return v - tanh(v); });
  }
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
