#pragma once
#include "ops/scalar/horner.h"
#include "ops/scalar/twofold.h"

namespace rlx {
inline constexpr int twofold_cells = 32, first_log = 16;  // parts of a turn, and of the numbers up to 1

/// -log(k / 32) for k = 16, 17, ... 32.
inline constexpr std::array<std::array<double, 2>, 17> minus_logs{{
    {0.6931471805599453, 2.3190468138462996e-17},
    {0.6325225587435105, -2.1085297878853066e-17},
    {0.5753641449035618, 5.214321232885128e-17},
    {0.5212969236332861, 2.9212921959474365e-17},
    {0.4700036292457356, -2.3229412495470032e-17},
    {0.42121346507630353, 2.2407148500765553e-17},
    {0.3746934494414107, -3.9243112288632396e-18},
    {0.33024168687057687, -1.0828321637483858e-17},
    {0.2876820724517809, 2.607160616442564e-17},
    {0.24686007793152578, 1.361743371748368e-17},
    {0.2076393647782445, 1.2053243216686129e-17},
    {0.16989903679539747, -4.868008764439071e-19},
    {0.13353139262452263, -3.664457663660085e-18},
    {0.09844007281325252, -4.439009633675136e-18},
    {0.06453852113757118, -6.470486661692933e-18},
    {0.0317486983145803, 3.0382263084680858e-18},
    {0, 0},
}};
/// 1 / tan(pi k / 32) for k = 0, 1, ... 16; at 0 that of 1.
inline constexpr std::array<std::array<double, 2>, 17> cotangents{{
    {10.15317038760886, 5.362306887894472e-16},
    {10.15317038760886, 5.362306887894472e-16},
    {5.027339492125848, 2.95379181037367e-17},
    {3.2965582089383205, -9.53295779936916e-17},
    {2.414213562373095, 1.2537167179050217e-16},
    {1.8708684117893895, 2.945807107795785e-17},
    {1.496605762665489, 6.974100888958305e-17},
    {1.2185035255879764, -2.1244788699148428e-17},
    {1, 0},
    {0.8206787908286604, -2.2923147594675738e-17},
    {0.6681786379192989, 4.1042270233610004e-17},
    {0.5345111359507917, -5.2626469389262167e-17},
    {0.41421356237309503, 1.4349369327986523e-17},
    {0.3033466836073424, -1.2766990847826405e-17},
    {0.198912367379658, 8.391794477636538e-19},
    {0.09849140335716425, 5.3100671162822435e-18},
    {0, 0},
}};

struct TwofoldRatio {
  double numerator, denominator;
};
/// The sum of `exact` x^k and, of higher powers, x^n times `rest`.
inline Twofold twofold_series(Twofold x, std::span<const TwofoldRatio> exact, Value rest) {
  Twofold sum{rest, like(rest, 0)};
  for (std::size_t i = exact.size(); i-- > 0;) sum = sum * x + twofold_ratio(rest, exact[i].numerator, exact[i].denominator);
  return sum;
}

/// log(u): u = 2^e m, and m is near 32 / k for a whole k, where log(m k / 32) = 2 atanh(r / (2 + r)), r = m k / 32 - 1 without error.
inline Twofold twofold_log(Value u) {
  constexpr int fraction_bits = 52, bias = 1023;
  constexpr std::array<TwofoldRatio, 3> odd{{{2, 1}, {2, 3}, {2, 5}}};
  constexpr std::array<double, 6> rest{2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17};
  Value bits = bitcast(u, i64), width = like(bits, fraction_bits), exponent = shr(bits, width) - bias;
  Value m = bitcast(bits - shl(exponent, width), f64);
  Value k = round(twofold_cells / m), row = cast(k - first_log, i32), r = fma(m, k / twofold_cells, like(u, -1)), zero = like(u, 0);
  const Twofold s = Twofold{r, zero} / exact_sum_of_ordered(like(u, 2), r), square = s * s;
  const Twofold of_m = twofold_row(row, minus_logs) + s * twofold_series(square, odd, horner(square.high, rest));
  constexpr double log_2 = 0.6931471805599453, log_2_low = 2.3190468138462996e-17;
  return Twofold{cast(exponent, f64), zero} * Twofold{like(u, log_2), like(u, log_2_low)} + of_m;
}

/// pi / tan(pi x), x from 2^-7 to 1/2: by the place k / 32 next to it, and the tangent of what is left.
inline Twofold cotangent_of_turns(Value x) {
  constexpr std::array<TwofoldRatio, 5> odd{{{1, 1}, {1, 3}, {2, 15}, {17, 315}, {62, 2835}}};
  constexpr std::array<double, 5> rest{1382.0 / 155925, 21844.0 / 6081075, 929569.0 / 638512875, 6404582.0 / 10854718875,
                                       443861162.0 / 1856156927625};
  Value k = max(round(x * twofold_cells), like(x, 1)), row = cast(k, i32), zero = like(x, 0);
  const Twofold pi{like(x, 3.141592653589793), like(x, 1.2246467991473532e-16)}, one{like(x, 1), zero};
  const Twofold angle = pi * Twofold{x - k / twofold_cells, zero}, square = angle * angle,
                tangent = angle * twofold_series(square, odd, horner(square.high, rest));
  const Twofold at_place = twofold_row(row, cotangents);
  return pi * ((at_place + -tangent) / (one + at_place * tangent));
}

/// digamma(v) of f64 v < -25 with v - floor(v) from 2^-7 to 1/2, where the roots are: there logarithm and cotangent cancel, so both have
/// twice the digits.
inline Value digamma_beside_far_roots(Value v) {
  // digamma(v) = log(u) + 1 / (2 u) - sum of B2n / (2 n u^2n) - pi / tan(pi v) with u = -v.
  constexpr std::array<TwofoldRatio, 3> bernoulli{{{-1, 12}, {1, 120}, {-1, 252}}};
  constexpr std::array<double, 10> rest{1.0 / 240,        -1.0 / 132,      691.0 / 32760,  -1.0 / 12,           3617.0 / 8160,
                                        -43867.0 / 14364, 174611.0 / 6600, -77683.0 / 276, 236364091.0 / 65520, -657931.0 / 12};
  Value u = -v, zero = like(v, 0);
  const Twofold inverse = Twofold{like(v, 1), zero} / Twofold{u, zero}, square = inverse * inverse;
  const Twofold half{inverse.high * 0.5, inverse.low * 0.5};
  const Twofold smooth = twofold_log(u) + (half + square * twofold_series(square, bernoulli, horner(square.high, rest)));
  const Twofold y = smooth + -cotangent_of_turns(v - floor(v));
  return y.high + y.low;
}

}  // namespace rlx
