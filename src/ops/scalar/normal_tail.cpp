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

/// How a type computes e^(-t/2) for |t| <= ln 2, and 2^n.
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

// scale * e^(-rate x^2) while that is a normal number; elsewhere any number.
Value gaussian(Value x, double rate, double scale) {
  const Power& p = power_of(x.dtype());
  const Value square = x * x, square_low = fma(x, x, -square);
  const Value shifted = fma(square, like(x, -rate / std::numbers::ln2), like(x, p.magic)), n = shifted - p.magic;
  // t = 2 rate x^2 + n ln 4, here over 2 rate: e^(-rate x^2) = 2^n e^(-t/2). The first sum is exact.
  const double per_square = 1 / (2 * rate);
  const Value t = fma(n, like(x, p.ln4_high * per_square), square) + fma(n, like(x, p.ln4_low * per_square), square_low);
  std::vector<double> coefficients;
  double power = scale;
  for (const double c : p.coefficients) coefficients.push_back(c * power), power *= 2 * rate;
  // 2^n goes straight into the exponent field.
  // Pairs are for the speed of gelu, and cost a unit in the last place that erfc and f64 have not to spare.
  const Value e = bitcast(x.dtype() == f64 || rate == 1 ? horner(t, coefficients) : paired_horner(t, coefficients), p.bits);
  return bitcast(e + shl(bitcast(shifted, p.bits), scalar(e, p.mantissa, p.bits)), x.dtype());
}

// R(stretch * x) / slow_scale as a fraction: for f32 of two polynomials, relative error 5e-9; for f64 of one in (a - 5) / (a + 5), after
// Shepherd and Laframboise 1981, relative error 1.2e-17.
struct Fraction {
  Value top, below;
};
Fraction slow_part(Value x, double stretch) {
  if (x.dtype() == f64) {
    std::array<double, 23> p{0.76919304975006296,     -0.6653825028900567,    0.49530561596997638,    -0.31353315667130441,
                             0.16502036617038663,     -0.069118638706313721,  0.020795066799841782,   -0.0029933767704736091,
                             -0.00079786939800958307, 0.00054489906466784461, -5.937573089136816e-5,  -4.9762814823074437e-5,
                             1.6681224704561828e-5,   3.9809078012470841e-6,  -2.7692923314313877e-6, -3.3663545825864689e-7,
                             4.3317428420543432e-7,   4.2311818287082824e-8,  -6.5962513845555677e-8, -9.3482740267273744e-9,
                             7.6627102500602243e-9,   1.7663909967327449e-9,  -1.5424596193893094e-10};
    for (double& c : p) c /= stretch;
    const double border = 5 / stretch;
    const Value inverse = 1 / (x + border), near = (x - border) * inverse;
    const Value lost = fma(-near, x, fma(near + 1, like(x, -border), x));  // x - border - near (x + border)
    return {horner(fma(lost, inverse, near), p), x + border};
  }
  std::array<double, 4> top{124.363836071, 108.369879666, 45.0977982342, 9.94572435967};
  std::array<double, 5> rest{99.2293929709, 41.277681364, 10.161171809, 0.9842474436, 0.00087306122};
  for (std::size_t k = 0; k < top.size(); ++k) top[k] *= std::pow(stretch, static_cast<double>(k) - 4);
  for (std::size_t k = 0; k < rest.size(); ++k) rest[k] *= std::pow(stretch, static_cast<double>(k) - 5);
  // The lower polynomial is x times the upper one, and a small rest: what the upper one is off by cancels.
  const Value upper = monic_horner(x, top);
  return {upper, fma(x, upper, horner(x, rest))};
}
double slow_scale(DType t, double stretch) { return t == f64 ? 1 : 0.39894794419135402 / stretch; }

}  // namespace

Value NormalTail::of(Value x, Value weight) const {
  const double stretch = std::sqrt(2 * rate), scale = factor * slow_scale(x.dtype(), stretch);
  // Beyond the limit whatever comes out is not taken.
  const Value limit = like(x, std::sqrt(std::log(scale / power_of(x.dtype()).smallest) / rate) * (1 - 1e-6));
  const Fraction slow = slow_part(x, stretch);
  Value ratio = weight ? slow.top * weight : slow.top;
  ratio = ratio / slow.below;  // while the power is computed
  return select(gt(x, limit), like(x, 0), gaussian(x, rate, scale) * ratio);
}

}  // namespace rlx
