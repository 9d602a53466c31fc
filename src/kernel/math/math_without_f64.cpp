#include "kernel/math/math_functions.h"
#include "kernel/math/pairs.h"

// Functions of f32 for devices without f64. What others compute in f64 is a pair of f32 here, or integers.
namespace rlx::math::without_f64 {
namespace {

/// log x for finite x > 0, relative error 2^-34: 2 s + s^3 (2/3 + ...) for s = (m - 1) / (m + 1), of which all that counts is a pair. As
/// that of f64 in math_power.cpp.
Pair log_pair(const Term& x) {
  constexpr double sqrt_half_bits = 0x3F3504F3, two_thirds = 0.666666686534881591796875, smallest_normal = 0x1p-126;
  const Term is_subnormal = x < smallest_normal;
  const Term bits = bitcast(select(is_subnormal, x * 0x1p23, x), i32), count = (bits - sqrt_half_bits) >> 23;
  const Term exponent = cast(count, f32) + select(is_subnormal, x.constant(-23), 0), f = bitcast(bits - (count << 23), f32) - 1;
  const Pair below = fast_sum(f.constant(2), f);  // m + 1
  const Term inverse = 1 / below.high;
  const Term s = f * inverse;
  const Term s_low = fma(neg(s), below.low, fma(neg(s), below.high, f)) * inverse;
  const Pair square = product(s, s);
  const Term z_low = fma(s * 2, s_low, square.low);
  const Term u = square.high * polynomial(square.high, {0.4, 0.2857142857, 0.2222222222, 0.1818181818, 0.17});
  const Pair factor = fast_sum(u.constant(two_thirds), u);
  const Term factor_low = factor.low + (2.0 / 3 - two_thirds);
  const Pair cube = product(s, square.high);
  const Term cube_low = fma(s, z_low, fma(s_low, square.high, cube.low));
  const Pair curved = product(cube.high, factor.high);
  const Term curved_low = fma(cube.high, factor_low, fma(cube_low, factor.high, curved.low));
  const Pair m = fast_sum(s * 2, curved.high);
  const Term m_low = m.low + fma(s_low, 2, curved_low);
  const Pair turns = product(exponent, exponent.constant(ln2_head));
  const Pair sum = fast_sum(turns.high, m.high);
  return fast_sum(sum.high, sum.low + (fma(exponent, ln2_rest, turns.low) + m_low));
}

/// e^(x + low) for |x| <= 150 and |low| < 2^-16: infinity or 0 where no normal number is near enough.
Term exp_of_sum(const Term& x, const Term& low) {
  const Nearest n = nearest(x, 1 / ln2);
  const Term r = fma(n.number, -ln2_head, x) + fma(n.number, -ln2_rest, low);
  const Term p = polynomial(r, {1, 1, 0.49999994, 0.166665152, 0.0416680835, 0.0083693536, 0.00138405629});
  // 2^n may be no f32 where the product is one.
  const Term count = cast(n.number, i32), half = count >> 1;
  return (p * power_of_two(half)) * power_of_two(count - half);
}

// -- sin and cos

constexpr double pi_high = 3.1415927410125732421875, pi_middle = -8.74227765734758577309e-8, pi_low = -3.43024902001176e-15;
constexpr double sign_bit = 0x1p31;

/// What sin(x + offset * pi) is the sine of, but for the bits of `sign`.
struct Angle {
  Term r, sign;
};

/// For |x| < 2^17, after Cody and Waite: the difference to the nearest end of a half turn, by three parts of pi.
Angle angle_of_small(const Term& x, double offset) {
  const Nearest n = offset == 0 ? nearest(x, 1 / 3.14159265358979323846) : nearest(fma(x, 1 / 3.14159265358979323846, offset), 1);
  const Term turns = n.number - offset;
  const Term a = fma(neg(turns), pi_high, x);
  const Pair middle = product(turns, turns.constant(pi_middle));
  const Term difference = a - middle.high, other = difference - a;
  const Term lost = (a - (difference - other)) - (middle.high + other);  // by the subtraction (Knuth)
  return {difference + ((lost - middle.low) - turns * pi_low), bitcast(n.bits << 31, u32)};
}

/// The product of two u32 as two of them, by halves.
struct WideProduct {
  Term high, low;
};
WideProduct multiply(const Term& a, const Term& b) {
  const Term a_low = a & 0xFFFF, a_high = a >> 16, b_low = b & 0xFFFF, b_high = b >> 16;
  const Term first = a_low * b_low, across = a_high * b_low + (first >> 16), other = a_low * b_high + (across & 0xFFFF);
  return {a_high * b_high + (across >> 16) + (other >> 16), a * b};
}

/// 96 bits of 1/pi, of which the first stands for 2^(31 - from), from < 160: the bits before it make whole turns of what they multiply.
std::array<Term, 3> turn_bits(const Term& from) {
  constexpr std::array<std::uint32_t, 8> inverse_of_pi{0,          0x517CC1B7, 0x27220A94, 0xFE13ABE8,
                                                       0xFA9A6EE0, 0x6DB14ACC, 0x9E21C820, 0xFF28B1D5};
  std::vector<Term> window;
  for (const std::uint32_t word : inverse_of_pi) window.push_back(from.integer(word));
  for (const std::size_t step : {std::size_t{4}, std::size_t{2}, std::size_t{1}}) {
    const Term skip = (from & static_cast<double>(32 * step)) != 0;
    for (std::size_t i = 0; i + step < window.size(); ++i) window[i] = select(skip, window[i + step], window[i]);
  }
  const Term bits = from & 31, rest = bits ^ 31;
  const auto shifted = [&](std::size_t i) { return (window[i] << bits) | ((window[i + 1] >> 1) >> rest); };
  return {shifted(0), shifted(1), shifted(2)};
}

/// For larger numbers, after Payne and Hanek: those bits of 1/pi that make a difference, times the integer x is a multiple of.
Angle angle_of_huge(const Term& x, double offset) {
  const Term bits = bitcast(x, u32), a = bitcast(abs(x), u32);
  const std::array<Term, 3> turns = turn_bits((a >> 23) - (150 - 31));
  const Term m = (a & 0x7FFFFF) | 0x800000;
  const WideProduct below = multiply(m, turns[1]);
  const Term low = below.low + multiply(m, turns[2]).high;
  Term high = m * turns[0] + below.high + select(low < below.low, low.constant(1), 0);
  if (offset != 0) high = high + offset * sign_bit;
  // The first bit turns the sign round, and the rest counts from the nearest end of its half turn.
  const Term sign = offset == 0 ? (high ^ bits) & sign_bit : high & sign_bit;
  Term near = (high << 1) | (low >> 31), far = low << 1;
  const Term flip = select((near & sign_bit) != 0, near.integer(0xFFFFFFFF), 0);
  near = near ^ flip;
  far = far ^ flip;
  const auto number = [](const Term& integer) { return cast(bitcast(integer, i32), f32); };
  const Term first = number(near >> 8), rest = fma(number(far & 0xFFFF), 0x1p-16, number(((near & 0xFF) << 16) | (far >> 16)));
  const Term turned = fma(first, pi_high * 0x1p-24, fma(rest, pi_high * 0x1p-48, first * (pi_middle * 0x1p-24)));
  return {turned + (x - x), sign};  // not finite: NaN
}

/// sin(x + offset * pi), where offset is 0 or 1/2.
Term sine(const Term& x, double offset) {
  const Term is_small = abs(x) < 0x1p17;
  const Angle small = angle_of_small(x, offset), huge = angle_of_huge(x, offset);
  const Term r = select(is_small, small.r, huge.r), sign = select(is_small, small.sign, huge.sign);
  const Term p = polynomial(fma(r, r, -1), {-0.00227901526, -0.150584339, 0.00775438197, -0.00018763782, 2.63256513e-06, -2.35417996e-08});
  return bitcast(bitcast(sine_of_half_turn(r, p), u32) ^ sign, f32);
}

}  // namespace

/// exp(y log x) with log x and the product as pairs, as in fdlibm and SLEEF.
Term pow(const Term& x, const Term& y) {
  if (const auto simple = simple_power(x, y)) return *simple;
  const Term a = abs(x);
  const Pair log = log_pair(a);
  const Term high = select(a == 0, -infinity, select(a == infinity, infinity, log.high));
  const Term whole = y * high;
  constexpr double beyond = 150;  // every such power is infinite or 0
  const Term low = select(abs(whole) < beyond, fma(y, log.low, fma(y, high, neg(whole))), 0);
  return power_with_signs(x, y, exp_of_sum(at_least(at_most(whole, beyond), -beyond), low));
}

/// Below 2^-12 no term counts but x itself; others would be too small for normal numbers.
Term sin(const Term& x) { return select(abs(x) < 0x1p-12, x, sine(x, 0)); }
Term cos(const Term& x) { return sine(x, 0.5); }

}  // namespace rlx::math::without_f64
