// The hyperbolic functions and their inverses, from the scalar primitives: by formulas that do not cancel or overflow.
#include <numbers>

#include "ops/scalar/complex_functions.h"
#include "ops/scalar/function.h"

namespace rlx {
namespace {

using In = std::span<const Value>;
constexpr double square_is_safe = 1e10;  // above it x * x + 1 = x * x in every type, below it x * x is finite in f32

/// 1 / sqrt(square(v)), where that is v^2 but for a term that counts below `square_is_safe` only.
template <class Square>
Value slope(Value v, Square square) {
  Value a = abs(v), large = gt(a, like(v, square_is_safe));
  return select(large, 1 / select(large, a, like(v, 1)), rsqrt(square(select(large, like(v, 2), v))));
}

// e^|v| / 2, which is finite wherever sinh and cosh are: v - 1 is exact from 1 on, and below it the rounding is half a unit.
Value half_power(Value v) { return exp(abs(v) - 1) * (std::numbers::e / 2); }

struct Sinh : UnaryComplexFunction<Sinh> {
  static constexpr std::string_view name = "sinh";
  static constexpr std::string_view formula = "(e^x - e^-x) / 2";
  static Value body(const Sinh&, Value x) {
    return in_wide_or_complex(name, x, complex_sinh, [](Value v) {
      Value large = gt(abs(v), like(v, 1)), small = expm1(select(large, like(v, 0), v)), half = half_power(v);
      return select(large, sign(v) * (half - 0.25 / half), (small + small / (small + 1)) * 0.5);
    });
  }
  static Values jvp(const Sinh&, In x, In, In dx) { return times(dx[0], cosh(widen(x[0]))); }
};
const Op<Sinh> sinh_op;

struct Cosh : UnaryComplexFunction<Cosh> {
  static constexpr std::string_view name = "cosh";
  static constexpr std::string_view formula = "(e^x + e^-x) / 2";
  static Value body(const Cosh&, Value x) {
    return in_wide_or_complex(name, x, complex_cosh, [](Value v) {
      Value half = half_power(v);
      return half + 0.25 / half;
    });
  }
  static Values jvp(const Cosh&, In x, In, In dx) { return times(dx[0], sinh(widen(x[0]))); }
};
const Op<Cosh> cosh_op;

struct Asinh : UnaryComplexFunction<Asinh> {
  static constexpr std::string_view name = "asinh";
  static constexpr std::string_view formula = "sign(x) * log(|x| + sqrt(x^2 + 1))";
  static Value body(const Asinh&, Value x) {
    return in_wide_or_complex(name, x, complex_asinh, [](Value v) {
      Value a = abs(v), large = gt(a, like(v, square_is_safe)), small = select(large, like(v, 1), a);
      Value near = log1p(small + small * small / (sqrt(small * small + 1) + 1));
      return sign(v) * select(large, log(select(large, a, like(v, 1))) + std::numbers::ln2, near);
    });
  }
  static Values jvp(const Asinh&, In x, In, In dx) {
    if (is_complex(x[0].dtype())) return {dx[0] * slope_of_complex_asin(complex(-imag(x[0]), real(x[0])))};
    return times(dx[0], slope(widen(x[0]), [](Value v) { return square(v) + 1; }));
  }
};
const Op<Asinh> asinh_op;

struct Acosh : UnaryComplexFunction<Acosh> {
  static constexpr std::string_view name = "acosh";
  static constexpr std::string_view formula = "log(x + sqrt(x^2 - 1))";
  static constexpr double low = 1.3, high = 8;
  static Value body(const Acosh&, Value x) {
    return in_wide_or_complex(name, x, complex_acosh, [](Value v) {
      Value large = gt(v, like(v, square_is_safe)), above = select(large, like(v, 1), v - 1);
      Value allowed = select(lt(above, like(v, 0)), like(v, nan), above);  // below -1 the square is positive again
      return select(large, log(select(large, v, like(v, 1))) + std::numbers::ln2, log1p(allowed + sqrt(allowed * (allowed + 2))));
    });
  }
  static Values jvp(const Acosh&, In x, In, In dx) {
    if (is_complex(x[0].dtype())) return {dx[0] * (rsqrt(x[0] - 1) * rsqrt(x[0] + 1))};
    return times(dx[0], slope(widen(x[0]), [](Value v) { return (v - 1) * (v + 1); }));
  }
};
const Op<Acosh> acosh_op;

struct Atanh : UnaryComplexFunction<Atanh> {
  static constexpr std::string_view name = "atanh";
  static constexpr std::string_view formula = "(log1p(x) - log1p(-x)) / 2";
  static constexpr double low = -0.9, high = 0.9;
  static Value body(const Atanh&, Value x) {
    return in_wide_or_complex(name, x, complex_atanh, [](Value v) { return (log1p(v) - log1p(-v)) * 0.5; });
  }
  static Values jvp(const Atanh&, In x, In, In dx) {
    if (is_complex(x[0].dtype())) return {dx[0] / ((1 - x[0]) * (x[0] + 1))};
    return times(dx[0], 1 / one_less_square(widen(x[0])));
  }
};
const Op<Atanh> atanh_op;

}  // namespace

/// The hyperbolic sine.
Value sinh(Operand x) { return sinh_op({}, x); }
/// The hyperbolic cosine.
Value cosh(Operand x) { return cosh_op({}, x); }
/// The inverse of sinh.
Value asinh(Operand x) { return asinh_op({}, x); }
/// The inverse of cosh for x >= 1; NaN below.
Value acosh(Operand x) { return acosh_op({}, x); }
/// The inverse of tanh for -1..1; NaN outside.
Value atanh(Operand x) { return atanh_op({}, x); }

}  // namespace rlx
