#include "ops/scalar/normal_tail.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/scalar/horner.h"

namespace rlx {
namespace {

// 1 - Phi(a) = e^(-a^2/2) R(a), where R falls slowly, from 1/2 to 1 / (a sqrt(2 pi)). The power cannot be had from exp, as the rounding of
// a^2 would be blown up a^2/2 times.

/// How a type computes e^(-s/2) for |s| <= ln 2, and 2^n.
struct Power {
  DType bits;
  int mantissa;
  double magic;              // 1.5 * 2^mantissa: what is added to it is rounded to an integer, in the low bits
  double ln4_high, ln4_low;  // 2 ln 2; multiples of the first part by integers below 2^11 (f64) or 2^8 (f32) are exact
  double smallest;
  std::span<const double> coefficients;  // minimax fits of the relative error: 2e-9 and 3e-18
};
constexpr std::array<double, 7> narrow_power{1.00000000056,    -0.50000001827,    0.12499998008,  -0.0208330239884,
                                             0.00260426449213, -0.00026171557315, 2.1619903077e-5};
constexpr std::array<double, 12> wide_power{1.0,
                                            -0.5,
                                            0.125000000000000447,
                                            -0.0208333333333327046,
                                            0.0026041666666557112467,
                                            -0.000260416666673784165,
                                            0.0000217013889868703058,
                                            -1.55009917423477072e-6,
                                            9.68808051540029984e-8,
                                            -5.38234849072833738e-9,
                                            2.69848074268271103e-10,
                                            -1.22041916977963734e-11};
const Power& power_of(DType t) {
  static const Power narrow{i32, 23, 0x1.8p23, 0x1.62e4p0, 0x1.7f7d1cp-19, std::numeric_limits<float>::min(), narrow_power};
  static const Power wide{i64, 52, 0x1.8p52, 0x1.62e42fefa3p0, 0x1.3de6af278ece6p-41, std::numeric_limits<double>::min(), wide_power};
  return t == f64 ? wide : narrow;
}

// e^(-rate x^2) = 2^n e^(-rate t): n stands in the low bits of `shifted`.
struct Reduced {
  Value t, shifted;
};
Reduced reduced(Value x, double rate) {
  const Power& p = power_of(x.dtype());
  const Value square = x * x, square_low = fma(x, x, -square);
  const Value shifted = fma(square, like(x, -rate / std::numbers::ln2), like(x, p.magic)), n = shifted - p.magic;
  // t = x^2 + n ln 4 / (2 rate). The first sum is exact.
  const double per_square = 1 / (2 * rate);
  return {fma(n, like(x, p.ln4_high * per_square), square) + fma(n, like(x, p.ln4_low * per_square), square_low), shifted};
}
// Of scale * e^(-rate t).
std::vector<double> power_coefficients(DType t, double rate, double scale) {
  std::vector<double> coefficients;
  for (const double c : power_of(t).coefficients) coefficients.push_back(c * scale), scale *= 2 * rate;
  return coefficients;
}
// 2^n times the float of these bits, straight in the exponent field.
Value times_power(Value bits, const Reduced& r, DType t) {
  return bitcast(bits + shl(bitcast(r.shifted, bits.dtype()), scalar(bits, power_of(t).mantissa, bits.dtype())), t);
}

// scale * e^(-rate x^2) in f32 while that is a normal number; elsewhere any number.
Value gaussian(Value x, double rate, double scale) {
  const Reduced r = reduced(x, rate);
  const std::vector<double> coefficients = power_coefficients(f32, rate, scale);
  // Pairs are for the speed of gelu, and cost a unit in the last place that erfc has not to spare.
  return times_power(bitcast(rate == 1 ? horner(r.t, coefficients) : paired_horner(r.t, coefficients), i32), r, f32);
}

// R(stretch * x) * stretch / slow_scale as a fraction of two polynomials, relative error 5e-9.
struct Fraction {
  Value top, below;
};
constexpr double slow_scale = 0.39894794419135402;
Fraction slow_part(Value x, double stretch) {
  std::array<double, 4> top{124.363836071, 108.369879666, 45.0977982342, 9.94572435967};
  std::array<double, 5> rest{99.2293929709, 41.277681364, 10.161171809, 0.9842474436, 0.00087306122};
  for (std::size_t k = 0; k < top.size(); ++k) top[k] *= std::pow(stretch, static_cast<double>(k) - 4);
  for (std::size_t k = 0; k < rest.size(); ++k) rest[k] *= std::pow(stretch, static_cast<double>(k) - 5);
  // The lower polynomial is x times the upper one, and a small rest: what the upper one is off by cancels.
  const Value upper = monic_horner(x, top);
  return {upper, fma(x, upper, horner(x, rest))};
}

Value narrow_tail(Value x, double rate, double factor, Value weight) {
  const double stretch = std::sqrt(2 * rate);
  const Fraction slow = slow_part(x, stretch);
  Value ratio = weight ? slow.top * weight : slow.top;
  ratio = ratio / slow.below;  // while the power is computed
  return gaussian(x, rate, factor * slow_scale / stretch) * ratio;
}

// (y + border) e^(y^2) erfc(y) by powers of (y - 4) / (y + 4), relative error 1.1e-17 for 0 <= y <= 27. Of slowly varying forms, after
// Shepherd and Laframboise 1981, it is the one that is nearly constant: the first coefficient is the most of it, so that the rounding of
// the others hardly counts. sqrt(2) border is a number of 31 bits as well.
constexpr double border = 1311738121 * 0x1p-31, border_sqrt2 = 1855077841 * 0x1p-31;
constexpr std::array<double, 23> nearly_constant{
    0.6316806149025774,     -0.09852194643637135,  0.03192957926761776,    0.015844545847382017,  -0.038443616745441195,
    0.039872452050581667,   -0.029696444246159276, 0.01716031895813019,    -0.007648885624217229, 0.0024274211281067443,
    -0.0003812984311507279, -9.087443018300825e-5, 7.281132947589e-5,      -1.241239265409757e-5, -5.286003260752031e-6,
    2.8134412200853314e-6,  1.1901604027109884e-7, -4.067263435618785e-7,  3.440686132891447e-8,  5.5918573656131585e-8,
    -4.278642132195423e-9,  -6.650071994030052e-9, -8.498359795634056e-10,
};

// In f64, with y = sqrt(rate) x. What the roundings of the fraction lose goes along to the last product.
Value wide_tail(Value x, double rate, double factor, Value weight) {
  const double per_root = 1 / std::sqrt(rate);
  const Value middle = like(x, 4 * per_root), start = like(x, rate == 1 ? border : border_sqrt2);
  const Value by_far = 1 / (x + middle), below = x + start, by_below = 1 / below;
  Value near = (x - middle) * by_far;
  near = fma(fma(-near, x, fma(near + 1, -middle, x)), by_far, near);  // x - middle - near (x + middle) is what it lacks
  std::vector<double> coefficients(nearly_constant.begin(), nearly_constant.end());
  for (double& c : coefficients) c *= per_root;
  const Value rest = horner(near, std::span(coefficients).subspan(1)), first = like(x, coefficients[0]), top = fma(near, rest, first);
  const Value ratio = top * by_below, top_lost = fma(near, rest, first - top), below_lost = x - (below - start);
  const Value ratio_lost = fma(-ratio, below_lost, fma(-ratio, below, top) + top_lost) * by_below;
  const Reduced r = reduced(x, rate);
  const Value power = horner(r.t, power_coefficients(f64, rate, factor / 2)), tail = fma(power, ratio, power * ratio_lost);
  return (weight ? tail * weight : tail) * times_power(scalar(x, 0x3ff0000000000000, i64), r, f64);
}

}  // namespace

Value NormalTail::of(Value x, Value weight) const {
  const bool is_wide = x.dtype() == f64;
  // Beyond the limit, where the power is no normal number, whatever comes out is not taken.
  const double scale = is_wide ? factor / 2 : factor * slow_scale / std::sqrt(2 * rate);
  const Value limit = like(x, std::sqrt(std::log(scale / power_of(x.dtype()).smallest) / rate) * (1 - 1e-6));
  return select(gt(x, limit), like(x, 0), (is_wide ? wide_tail : narrow_tail)(x, rate, factor, weight));
}

}  // namespace rlx
