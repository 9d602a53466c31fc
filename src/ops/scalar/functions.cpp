// Mathematical functions of elements, from the scalar primitives: each by a formula that is accurate over its whole range.
#include <array>
#include <cmath>
#include <numbers>

#include "ops/scalar/complex_functions.h"
#include "ops/scalar/function.h"
#include "ops/scalar/horner.h"
#include "ops/scalar/normal_tail.h"

namespace rlx {
namespace {

using In = std::span<const Value>;
using std::numbers::pi;

// log(v) * (factor + rest), rounded as if it were one product.
Value log_times(Value v, double factor, double rest) {
  const double high = v.dtype() == f64 ? factor : static_cast<float>(factor);
  Value y = log(v);
  return select(lt(abs(y), like(v, infinity)), fma(y, like(v, high), y * (factor - high + rest)), y);
}

struct Square : UnaryFunction<Square> {
  static constexpr std::string_view name = "square";
  static constexpr std::string_view formula = "x * x";
  static Value body(const Square&, Value x) { return is_complex(x.dtype()) ? complex_square(x) : x * x; }
};
const Op<Square> square_op;

struct Reciprocal : UnaryComplexFunction<Reciprocal> {
  static constexpr std::string_view name = "reciprocal";
  static constexpr std::string_view formula = "1 / x";
  static constexpr double low = 0.3;
  static Value body(const Reciprocal&, Value x) {
    return in_wide_or_complex(name, x, [](Value z) { return 1 / z; }, [](Value v) { return 1 / v; });
  }
};
const Op<Reciprocal> reciprocal_op;

struct Ceil : UnaryFunction<Ceil> {
  static constexpr std::string_view name = "ceil";
  static constexpr std::string_view formula = "smallest integer >= x";
  static Value body(const Ceil&, Value x) { return check_float(name, x), -floor(-x); }
};
const Op<Ceil> ceil_op;

struct Trunc : UnaryFunction<Trunc> {
  static constexpr std::string_view name = "trunc";
  static constexpr std::string_view formula = "x rounded towards 0";
  static Value body(const Trunc&, Value x) {
    check_float(name, x);
    return select(lt(x, like(x, 0)), -floor(-x), floor(x));
  }
};
const Op<Trunc> trunc_op;

struct Exp2 : UnaryComplexFunction<Exp2> {
  static constexpr std::string_view name = "exp2";
  static constexpr std::string_view formula = "2^x";
  static Value body(const Exp2&, Value x) {  // e^(x ln 2) would carry the rounding of x ln 2 into the exponent
    return in_wide_or_complex(
        name, x, [](Value z) { return exp(complex_scaled(z, std::numbers::ln2)); }, [](Value v) { return pow(like(v, 2), v); });
  }
};
const Op<Exp2> exp2_op;

struct Log2 : UnaryComplexFunction<Log2> {
  static constexpr std::string_view name = "log2";
  static constexpr std::string_view formula = "log(x) / log(2)";
  static constexpr double low = 0.2, high = 9;
  static Value body(const Log2&, Value x) {
    return in_wide_or_complex(
        name, x, [](Value z) { return complex_scaled(log(z), std::numbers::log2e); },
        [](Value v) { return log_times(v, std::numbers::log2e, 2.0355273740931033e-17); });
  }
  static Values jvp(const Log2&, In x, In, In dx) { return {dx[0] * (std::numbers::log2e / x[0])}; }
};
const Op<Log2> log2_op;

struct Log10 : UnaryComplexFunction<Log10> {
  static constexpr std::string_view name = "log10";
  static constexpr std::string_view formula = "log(x) / log(10)";
  static constexpr double low = 0.2, high = 9;
  static Value body(const Log10&, Value x) {
    return in_wide_or_complex(
        name, x, [](Value z) { return complex_scaled(log(z), std::numbers::log10e); },
        [](Value v) { return log_times(v, std::numbers::log10e, 1.098319650216765e-17); });
  }
  static Values jvp(const Log10&, In x, In, In dx) { return {dx[0] * (std::numbers::log10e / x[0])}; }
};
const Op<Log10> log10_op;

struct Cbrt : UnaryFunction<Cbrt> {
  static constexpr std::string_view name = "cbrt";
  static constexpr std::string_view formula = "sign(x) * |x|^(1/3)";
  static constexpr double low = 0.2;
  static Value body(const Cbrt&, Value x) {
    return in_wide(name, x, [](Value v) {
      Value a = abs(v), regular = logical_and(gt(a, like(v, 0)), lt(a, like(v, infinity)));
      Value small = lt(a, like(v, 0x1p-90));  // what its root is off by would be no normal number
      Value safe = select(regular, select(small, a * 0x1p90, a), like(v, 1));
      Value root = pow(safe, like(v, 1.0 / 3)), square = root * root;  // 1/3 is rounded, so Newton's step follows
      Value vanishes = eq(root, like(v, 0));  // denormal numbers count as 0, but not in every comparison of a kernel
      root = root - fma(root, square, -safe) / select(vanishes, like(v, 1), square * 3);
      return sign(v) * select(regular, select(small, root * 0x1p-30, root), a);
    });
  }
  static Values jvp(const Cbrt&, In, In y, In dx) {
    Value root = widen(y[0]);
    return times(dx[0], pow(root, like(root, -2)) / 3);  // not 1 / root^2, whose derivative at 0 has 0 times infinity
  }
};
const Op<Cbrt> cbrt_op;

struct Tan : UnaryComplexFunction<Tan> {
  static constexpr std::string_view name = "tan";
  static constexpr std::string_view formula = "sin(x) / cos(x)";
  static constexpr double low = -1.3, high = 1.3;
  static Value body(const Tan&, Value x) {
    return in_wide_or_complex(name, x, complex_tan, [](Value v) { return sin(v) / cos(v); });
  }
};
const Op<Tan> tan_op;

Value slope_of_asin(Value x) {
  if (is_complex(x.dtype())) return slope_of_complex_asin(x);
  return rsqrt(one_less_square(widen(x)));
}

struct Asin : UnaryComplexFunction<Asin> {
  static constexpr std::string_view name = "asin";
  static constexpr std::string_view formula = "2 atan(x / (1 + sqrt(1 - x^2)))";
  static constexpr double low = -0.9, high = 0.9;
  static Value body(const Asin&, Value x) {
    return in_wide_or_complex(name, x, complex_asin, [](Value v) {
      Value y = atan(v / (sqrt((1 - v) * (v + 1)) + 1)) * 2;
      return select(lt(abs(v), like(v, 1e-8)), v, y);  // half of the least normal numbers is none
    });
  }
  static Values jvp(const Asin&, In x, In, In dx) { return times(dx[0], slope_of_asin(x[0])); }
};
const Op<Asin> asin_op;

struct Acos : UnaryComplexFunction<Acos> {
  static constexpr std::string_view name = "acos";
  static constexpr std::string_view formula = "2 atan(sqrt((1 - x) / (1 + x)))";
  static constexpr double low = -0.9, high = 0.9;
  static Value body(const Acos&, Value x) {
    return in_wide_or_complex(name, x, complex_acos, [](Value v) { return atan(sqrt((1 - v) / (v + 1))) * 2; });
  }
  static Values jvp(const Acos&, In x, In, In dx) { return times(dx[0], -slope_of_asin(x[0])); }
};
const Op<Acos> acos_op;

struct Erfc : UnaryFunction<Erfc> {
  static constexpr std::string_view name = "erfc";
  static constexpr std::string_view formula = "1 - erf(x), accurate where it is small";
  static constexpr double low = -2, high = 4;
  static Value body(const Erfc&, Value x) {
    return in_wide(name, x, [](Value v) {
      Value tail = NormalTail{.rate = 1, .factor = 2}.of(abs(v));
      return select(lt(v, like(v, 0)), 2 - tail, tail);
    });
  }
  static Values jvp(const Erfc&, In x, In, In dx) { return times(dx[0], exp(-square(widen(x[0]))) * (-2 * std::numbers::inv_sqrtpi)); }
};
const Op<Erfc> erfc_op;

struct Sinc : UnaryFunction<Sinc> {
  static constexpr std::string_view name = "sinc";
  static constexpr std::string_view formula = "sin(pi x) / (pi x), 1 at 0";
  static Value body(const Sinc&, Value x) {
    return in_wide(name, x, [](Value v) {
      Value at_zero = eq(v, like(v, 0)), safe = select(at_zero, like(v, 1), v);
      return select(at_zero, like(v, 1), of_half_turns(safe, sin) / (safe * pi));
    });
  }
  /// sin(pi v) or cos(pi v): v less the nearest integer is exact, where pi v would be off by whole turns.
  static Value of_half_turns(Value v, Value (*function)(Operand)) {
    Value turns = round(v), half = turns * 0.5, y = function((v - turns) * pi);
    return select(eq(floor(half), half), y, -y);
  }
  // (cos u - sinc) / u cancels below 1; there its series in u^2, the coefficients (-1)^k 2k / (2k + 1)!.
  static constexpr std::array<double, 9> slope_series{-1.0 / 3,
                                                      1.0 / 30,
                                                      -1.0 / 840,
                                                      1.0 / 45360,
                                                      -1.0 / 3991680,
                                                      1.0 / 518918400,
                                                      -1.0 / 93405312000,
                                                      1.0 / 22230464256000,
                                                      -1.0 / 6758061133824000};
  static Values jvp(const Sinc&, In x, In, In dx) {
    Value v = widen(x[0]), u = v * pi, near = lt(abs(u), like(u, 1)), safe = select(near, like(u, 1), u);
    Value far = (of_half_turns(v, cos) - sinc(v)) / safe;  // not y, which is rounded
    return times(dx[0], select(near, u * horner(u * u, slope_series), far) * pi);
  }
};
const Op<Sinc> sinc_op;

/// The point (x, y) divided by the larger of |x| and |y|, so that squares neither overflow nor vanish; of infinite ones the signs.
struct Direction {
  Value largest, x, y, square;  // square: x^2 + y^2, 0 at the origin
  Direction(Value in_x, Value in_y) : largest(max(abs(in_x), abs(in_y))), x(share(in_x)), y(share(in_y)), square(x * x + y * y) {}
  Value share(Value v) const {
    Value is_largest = eq(abs(v), largest);
    return select(is_largest, sign(v), v / select(is_largest, like(v, 1), largest));
  }
};

struct Atan2 : BinaryFunction<Atan2> {
  static constexpr std::string_view name = "atan2";
  static constexpr std::string_view formula = "the angle of the point (x, y), operands in the order y, x; -pi..pi";
  static constexpr double low = 0.3;
  static Value body(const Atan2&, Value y, Value x) {
    const DType dtype = y.dtype();
    check_float(name, y);
    y = widen(y), x = widen(x);
    Value a = abs(y), b = abs(x), same = eq(a, b);  // 0 / 0 and infinity / infinity have an angle as well
    Value ratio = select(same, select(eq(a, like(a, 0)), like(a, 0), like(a, 1)), a / select(same, like(b, 1), b));
    Value angle = atan(ratio), turned = select(is_negative(x), pi - angle, angle);
    return cast(select(is_negative(y), -turned, turned), dtype);
  }
  static Values jvp(const Atan2&, In in, In, In d) {
    const Direction to(widen(in[1]), widen(in[0]));
    Value norm = to.square * to.largest;
    Value from_y = d[0] ? widen(d[0]) * (to.x / norm) : Value(), from_x = d[1] ? widen(d[1]) * (to.y / norm) : Value();
    Value total = !from_x ? from_y : !from_y ? -from_x : from_y - from_x;
    return {cast(total, in[0].dtype())};
  }
};
const Op<Atan2> atan2_op;

struct Hypot : BinaryFunction<Hypot> {
  static constexpr std::string_view name = "hypot";
  static constexpr std::string_view formula = "sqrt(x^2 + z^2) without overflow; infinity beside NaN too";
  static constexpr double low = 0.3;
  static Value body(const Hypot&, Value x, Value z) {
    const DType dtype = x.dtype();
    check_float(name, x);
    Value a = abs(widen(x)), b = abs(widen(z)), large = max(a, b);
    Value endless = logical_or(eq(a, like(a, infinity)), eq(b, like(b, infinity)));  // beside NaN too, as in IEEE 754
    Value plain = logical_or(eq(large, like(large, 0)), endless);
    Value ratio = select(plain, like(large, 0), min(a, b) / select(plain, like(large, 1), large));
    return cast(select(endless, like(large, infinity), large * sqrt(ratio * ratio + 1)), dtype);
  }
  static Values jvp(const Hypot&, In in, In y, In d) {
    const Direction to(widen(in[0]), widen(in[1]));
    Value length = sqrt(select(eq(to.square, like(to.square, 0)), like(to.square, 1), to.square));
    Value a = d[0] ? widen(d[0]) * (to.x / length) : Value(), b = d[1] ? widen(d[1]) * (to.y / length) : Value();
    return {cast(!a ? b : !b ? a : a + b, y[0].dtype())};
  }
};
const Op<Hypot> hypot_op;

struct LogAddExp : BinaryFunction<LogAddExp> {
  static constexpr std::string_view name = "logaddexp";
  static constexpr std::string_view formula = "log(e^x + e^z)";
  static Value difference(Value x, Value z) { return select(eq(x, z), like(x, 0), x - z); }  // of two infinities: 0
  static Value body(const LogAddExp&, Value x, Value z) {
    const DType dtype = x.dtype();
    check_float(name, x);
    x = widen(x), z = widen(z);
    return cast(max(x, z) + log1p(exp(-abs(difference(x, z)))), dtype);
  }
  static Values jvp(const LogAddExp&, In in, In, In d) {
    Value delta = difference(widen(in[0]), widen(in[1]));
    Value a = d[0] ? widen(d[0]) * sigmoid(delta) : Value(), b = d[1] ? widen(d[1]) * sigmoid(-delta) : Value();
    return {cast(!a ? b : !b ? a : a + b, in[0].dtype())};
  }
};
const Op<LogAddExp> logaddexp_op;

struct Lerp : UnaryFunction<Lerp> {
  static constexpr std::string_view name = "lerp";
  static constexpr std::string_view formula = "x + t * (z - x); exactly z at t = 1";
  static Value body(const Lerp&, Value x, Value z, Value t) {
    check_float(name, x);
    return select(lt(t, like(t, 0.5)), x + t * (z - x), z - (z - x) * (1 - t));
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, -2, 2, true, 3); }
};
const Op<Lerp> lerp_op;

}  // namespace

/// x * x.
Value square(Operand x) { return square_op({}, x); }
/// 1 / x.
Value reciprocal(Operand x) { return reciprocal_op({}, x); }
/// The smallest integer >= x.
Value ceil(Operand x) { return ceil_op({}, x); }
/// x rounded towards 0.
Value trunc(Operand x) { return trunc_op({}, x); }
/// 2^x.
Value exp2(Operand x) { return exp2_op({}, x); }
/// The logarithm to base 2.
Value log2(Operand x) { return log2_op({}, x); }
/// The logarithm to base 10.
Value log10(Operand x) { return log10_op({}, x); }
/// The real cube root, of negative numbers too.
Value cbrt(Operand x) { return cbrt_op({}, x); }
/// The tangent, x in radians.
Value tan(Operand x) { return tan_op({}, x); }
/// The inverse of sin for -1..1, in -pi/2..pi/2; NaN outside.
Value asin(Operand x) { return asin_op({}, x); }
/// The inverse of cos for -1..1, in 0..pi; NaN outside.
Value acos(Operand x) { return acos_op({}, x); }
/// 1 - erf(x), accurate for large x.
Value erfc(Operand x) { return erfc_op({}, x); }
/// sin(pi x) / (pi x), 1 at 0.
Value sinc(Operand x) { return sinc_op({}, x); }
/// The angle of the point (x, y) in -pi..pi, signed zeros as in C.
Value atan2(Operand y, Operand x) {
  std::tie(y, x) = match("atan2", y, x);
  return atan2_op({}, y, x);
}
/// sqrt(x^2 + z^2) without overflow; derivative 0 at the origin.
Value hypot(Operand x, Operand z) {
  std::tie(x, z) = match("hypot", x, z);
  return hypot_op({}, x, z);
}
/// log(e^x + e^z) without overflow.
Value logaddexp(Operand x, Operand z) {
  std::tie(x, z) = match("logaddexp", x, z);
  return logaddexp_op({}, x, z);
}
/// x + t * (z - x): x at t = 0, z at t = 1.
Value lerp(Operand x, Operand z, Operand t) {
  std::tie(x, z) = match("lerp", x, z);
  std::tie(x, t) = match("lerp", x, t);
  return lerp_op({}, x, broadcast_to(cast(z, x.dtype()), x.shape()), t);
}
}  // namespace rlx
