#pragma once
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <type_traits>
#include <vector>

#include "rlx/ops.h"

// The functions of one float, and what they are in wider arithmetic: in f64 for f32, in x86's numbers of 64 bits for f64.
namespace rlx::test {

/// A number in two parts, for arguments whose rounding a function would blow up.
template <class T>
struct Precise {
  T high, low;
};

/// factor * x, factor given in two parts.
template <class T>
Precise<T> scaled(T x, T factor, T rest) {
  const T high = factor * x;
  return {high, std::isinf(high) ? 0 : std::fma(factor, x, -high) + rest * x};
}

template <class T>
T exact_erfc(Precise<T> x) {  // erfc and the first term of its series there
  return std::erfc(x.high) - 2 * std::numbers::inv_sqrtpi_v<T> * std::exp(-x.high * x.high) * x.low;
}

template <class T>
T exact_gelu(T x) {
  const T factor = -1 / std::numbers::sqrt2_v<T>;  // its square is 1/2: what is missing to it follows from fma
  const T rest = std::fma(factor, factor, T(-0.5)) / (2 * factor);
  return x / 2 * exact_erfc(scaled(x, factor, -rest));
}

template <class T>
T exact_gelu_tanh(T x) {
  // m = 2 sqrt(2 / pi) (x + 0.044715 x^3) by pairs; 44715 is exact, and 0.044715 is 44715 / 10^6.
  if (!(std::fabs(x) < 60)) return x < 0 ? x * 0 : x;
  const T square = x * x, square_low = std::fma(x, x, -square);
  const T cubic = square * 44715, cubic_low = std::fma(square, T(44715), -cubic) + square_low * 44715;
  const T sum = T(1000000) + cubic, back = sum - T(1000000);
  const T sum_low = ((T(1000000) - (sum - back)) + (cubic - back)) + cubic_low;
  const T inner = x * sum, inner_low = std::fma(x, sum, -inner) + x * sum_low;
  const T factor = 2 * std::sqrt(2 * std::numbers::inv_pi_v<T>) / 1000000;
  // factor^2 10^12 pi = 8, with pi in two parts
  const T pi = std::numbers::pi_v<T>, pi_low = std::is_same_v<T, double> ? T(1.2246467991473532e-16L) : T(-5.0165576126683320e-20L);
  const T square_factor = factor * factor, square_factor_low = std::fma(factor, factor, -square_factor);
  const T product = square_factor * pi, product_low = std::fma(square_factor, pi, -product);
  const T eight = T(8e-12L), eight_low = T(std::fma(eight, T(1e12L), T(-8)) / T(-1e12L));
  const T rest = (((eight - product) - product_low) + eight_low - square_factor * pi_low - square_factor_low * pi) / (2 * factor * pi);
  const T m = inner * factor, low = std::fma(inner, factor, -m) + inner_low * factor + inner * rest;
  const T power = std::exp(-m) * (1 - low);
  return x / (1 + power);
}

template <class T>
T exact_tanhshrink(T x) {
  if (std::fabs(x) > 1) return x - std::tanh(x);
  T term = x * x * x, sum = 0;  // x cosh x - sinh x = the sum of x^(2 k + 1) 2 k / (2 k + 1)!
  for (int k = 1; k < 16; ++k) {
    sum += term * 2 * k / std::tgamma(T(2 * k + 2));
    term *= x * x;
  }
  return sum / std::cosh(x);
}

template <class T>
T exact_erf_inv(T x) {
  const T size = std::fabs(x), rest = 1 - size;
  if (x == 0 || !(size < 1)) return size == 1 ? x * std::numeric_limits<T>::infinity() : x == 0 ? x : std::numeric_limits<T>::quiet_NaN();
  // Newton's steps with the curvature (Halley), from the first terms of the series or of the tail; of erfc where it is the smaller one.
  T y = size < T(0.5) ? size * T(0.9) : std::sqrt(-std::log(rest));
  for (int i = 0; i < 60; ++i) {
    const T error = size < T(0.5) ? std::erf(y) - size : rest - std::erfc(y);
    const T step = error / (2 * std::numbers::inv_sqrtpi_v<T> * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

template <class T>
T exact_sinc(T x) {
  const T turns = std::nearbyint(x), y = std::sin((x - turns) * std::numbers::pi_v<T>) / (x * std::numbers::pi_v<T>);
  return x == 0 ? 1 : std::fmod(turns, T(2)) == 0 ? y : -y;
}

template <class T>
T exact_sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}
template <class T>
T exact_softplus(T x) {
  return std::fmax(x, T(0)) + std::log1p(std::exp(-std::fabs(x)));
}
template <class T>
T exact_elu(T x) {
  return x > 0 ? x : std::expm1(x);
}

/// By reflection, recurrence and the asymptotic series (Abramowitz and Stegun 6.3.7, 6.3.5, 6.3.18).
template <class T>
T exact_digamma(T x) {
  const T pi = std::numbers::pi_v<T>, turn = x - std::nearbyint(x);
  if (x <= 0 && turn == 0) return std::numeric_limits<T>::quiet_NaN();
  if (x < T(0.5)) return exact_digamma(1 - x) - pi * std::cos(pi * turn) / std::sin(pi * turn);
  T y = 0;
  for (; x < 30; ++x) y -= 1 / x;
  const T w = 1 / (x * x);
  return y + std::log(x) - 1 / (2 * x) -
         w * (T(1) / 12 - w * (T(1) / 120 - w * (T(1) / 252 - w * (T(1) / 240 - w * (T(1) / 132 - w * 691 / 32760)))));
}

/// e^-|x| I(x) of order 0 or 1: the power series, all terms of one sign, or the asymptotic one (Abramowitz and Stegun 9.6.10, 9.7.1).
template <class T>
T exact_bessel(int order, T x) {
  const T a = std::fabs(x);
  T term = 1, sum = 1;
  if (a <= 30) {
    for (int k = 1; k < 150; ++k) sum += term *= a * a / (4 * T(k) * (k + order));
    return std::exp(-a) * sum * (order == 0 ? T(1) : x / 2);
  }
  for (int k = 1; k < 40; ++k) sum += term *= T((2 * k - 1) * (2 * k - 1) - 4 * order * order) / (8 * k * a);
  return sum / std::sqrt(2 * std::numbers::pi_v<T>) / std::sqrt(a) * (order == 1 && x < 0 ? -1 : 1);
}

template <class T>
struct ExactFunction {
  std::string name;
  std::function<Value(Value)> build;
  std::function<T(T)> exact;
  double ulps;          // allowed error: 2, or as src/ops/scalar/README.md says
  double absolute = 0;  // an error that is allowed as well
};

/// Every function of one float that the documents promise to be right over its whole range. NaN passes through all of them.
template <class T>
std::vector<ExactFunction<T>> exact_functions() {
  using F = T (*)(T);
  return {
      {"exp", [](Value x) { return exp(x); }, F(std::exp), 2},
      {"expm1", [](Value x) { return expm1(x); }, F(std::expm1), 2},
      {"log", [](Value x) { return log(x); }, F(std::log), 2},
      {"log1p", [](Value x) { return log1p(x); }, F(std::log1p), 2},
      {"sqrt", [](Value x) { return sqrt(x); }, F(std::sqrt), 2},
      {"rsqrt", [](Value x) { return rsqrt(x); }, [](T x) { return 1 / std::sqrt(x); }, 2},
      {"sin", [](Value x) { return sin(x); }, F(std::sin), 2},
      {"cos", [](Value x) { return cos(x); }, F(std::cos), 2},
      {"tanh", [](Value x) { return tanh(x); }, F(std::tanh), 2},
      {"atan", [](Value x) { return atan(x); }, F(std::atan), 2},
      {"erf", [](Value x) { return erf(x); }, F(std::erf), 2},
      {"erf_inv", [](Value x) { return erf_inv(x); }, exact_erf_inv<T>, 4},
      {"sinh", [](Value x) { return sinh(x); }, F(std::sinh), 4},
      {"cosh", [](Value x) { return cosh(x); }, F(std::cosh), 4},
      {"asinh", [](Value x) { return asinh(x); }, F(std::asinh), 2},
      {"acosh", [](Value x) { return acosh(x); }, F(std::acosh), 4},
      {"atanh", [](Value x) { return atanh(x); }, F(std::atanh), 2},
      {"exp2", [](Value x) { return exp2(x); }, F(std::exp2), 2},
      {"log2", [](Value x) { return log2(x); }, F(std::log2), 2},
      {"log10", [](Value x) { return log10(x); }, F(std::log10), 2},
      {"cbrt", [](Value x) { return cbrt(x); }, F(std::cbrt), 2},
      {"tan", [](Value x) { return tan(x); }, F(std::tan), 4},
      {"asin", [](Value x) { return asin(x); }, F(std::asin), 2},
      {"acos", [](Value x) { return acos(x); }, F(std::acos), 2},
      {"erfc", [](Value x) { return erfc(x); }, F(std::erfc), std::is_same_v<T, double> ? 4.0 : 2.0},
      {"sinc", [](Value x) { return sinc(x); }, exact_sinc<T>, 4},
      {"reciprocal", [](Value x) { return reciprocal(x); }, [](T x) { return 1 / x; }, 2},
      {"sigmoid", [](Value x) { return sigmoid(x); }, exact_sigmoid<T>, 4},
      {"softplus", [](Value x) { return softplus(x); }, exact_softplus<T>, 2},
      {"log_sigmoid", [](Value x) { return log_sigmoid(x); }, [](T x) { return -exact_softplus(-x); }, 2},
      {"silu", [](Value x) { return silu(x); }, [](T x) { return x / (1 + std::exp(-x)); }, 4},
      {"gelu", [](Value x) { return gelu(x); }, exact_gelu<T>, 4},
      {"gelu_tanh", [](Value x) { return gelu_tanh(x); }, exact_gelu_tanh<T>, 4},
      {"mish", [](Value x) { return mish(x); }, [](T x) { return x * std::tanh(std::log1p(std::exp(x))); }, 4},
      {"softsign", [](Value x) { return softsign(x); }, [](T x) { return x / (1 + std::fabs(x)); }, 2},
      {"elu", [](Value x) { return elu(x); }, exact_elu<T>, 2},
      {"tanhshrink", [](Value x) { return tanhshrink(x); }, exact_tanhshrink<T>, 4},
      {"lgamma", [](Value x) { return lgamma(x); }, [](T x) { return std::lgamma(x); }, 4},
      // Near roots the terms cancel here, too; special_test.cpp has numbers there.
      {"digamma", [](Value x) { return digamma(x); }, exact_digamma<T>, 4, 2e-14},
      {"bessel_i0e", [](Value x) { return bessel_i0e(x); }, [](T x) { return exact_bessel(0, x); }, 4},
      {"bessel_i1e", [](Value x) { return bessel_i1e(x); }, [](T x) { return exact_bessel(1, x); }, 4},
  };
}

}  // namespace rlx::test
