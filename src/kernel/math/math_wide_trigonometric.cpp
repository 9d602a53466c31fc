#include <array>

#include "kernel/math/math_wide.h"

namespace rlx::math::wide {
namespace {

// x + offset pi is n pi + r with |r| <= pi/2, so its sine is that of r where n is even, and that of -r where n is odd: what is called
// the angle here.

/// The angle of x for |x| < 2^30, after Cody and Waite: pi in three parts, of which the first loses nothing.
Term angle_of_small(const Term& x, double offset) {
  constexpr double pi_first = 3.1415926535897931, pi_second = 1.2246467991473532e-16, pi_third = -2.9947698097183397e-33;
  const Nearest n = offset == 0 ? nearest(x, 1 / pi_first) : nearest(fma(x, 1 / pi_first, offset), 1);
  const Term turns = offset == 0 ? neg(n.number) : offset - n.number;
  const Term r = fma(turns, pi_third, fma(turns, pi_second, fma(turns, pi_first, x)));
  return bitcast(bits_of(r) ^ (n.bits << 63), f64);
}

/// The upper 64 bits of m * v for m < 2^53, and the lower ones.
struct WideProduct {
  Term high, low;
};
WideProduct multiply(const Term& m, const Term& v) {
  constexpr double mask = 0x1p32 - 1;
  const Term m0 = m & mask, m1 = m >> 32, v0 = v & mask, v1 = v >> 32;
  const Term lowest = m0 * v0, across = m0 * v1;
  const Term middle = (lowest >> 32) + (across & mask) + m1 * v0;
  return {(across >> 32) + m1 * v1 + (middle >> 32), (middle << 32) + (lowest & mask)};
}

/// 192 bits of 2^exponent / (2 pi) below the binary point, for 0 <= exponent + 32 = `from` < 1024.
std::array<Term, 3> turn_bits(const Term& from) {
  // 1 / (2^33 pi)
  constexpr std::array<std::uint64_t, 19> words{0x0000000028be60db, 0x9391054a7f09d5f4, 0x7d4d377036d8a566, 0x4f10e4107f9458ea,
                                                0xf7aef1586dc91b8e, 0x909374b801924bba, 0x827464873f877ac7, 0x2c4a69cfba208d7d,
                                                0x4baed1213a671c09, 0xad17df904e64758e, 0x60d4ce7d272117e2, 0xef7e4a0ec7fe25ff,
                                                0xf7816603fbcbc462, 0xd6829b47db4d9fb3, 0xc9f2c26dd3d18fd9, 0xa797fa8b5d49eeb1,
                                                0xfaf97c5ecf41ce7d, 0xe294a4ba9afed7ec, 0x47e357421580cc11};
  std::vector<Term> window;
  for (const std::uint64_t word : words) window.push_back(from.integer(word));
  // Four words from word `from` / 64 on, by one bit of that number after the other.
  for (const std::size_t step : {8, 4, 2, 1}) {
    const Term skip = (from & static_cast<double>(step * 64)) != 0;
    const std::size_t left = step + 3;
    for (std::size_t i = 0; i < left; ++i) window[i] = select(skip, window[i + step], window[i]);
  }
  const Term bits = from & 63, rest = bits ^ 63;
  const auto shifted = [&](std::size_t i) { return (window[i] << bits) | ((window[i + 1] >> 1) >> rest); };
  return {shifted(0), shifted(1), shifted(2)};
}

/// The angle of x for 2^30 <= |x| < infinity, after Payne and Hanek: those bits of 1/pi that make a difference, times the integer x
/// is a multiple of, in integers. 2^-116 is left, and no f64 is closer than 2^-62 to a multiple of pi/2.
Term angle_of_huge(const Term& x, double offset) {
  const Term bits = bitcast(x, u64), a = bitcast(abs(x), u64);
  const std::array<Term, 3> turns = turn_bits((a >> 52) - (1075 - 32));
  const Term m = (a & (0x1p52 - 1)) | 0x1p52;
  const WideProduct below = multiply(m, turns[1]);
  const Term low = below.low + multiply(m, turns[2]).high;
  Term high = m * turns[0] + below.high + select(low < below.low, low.constant(1), 0);
  if (offset != 0) high = high + offset * 0x1p63;
  // high and low are turns: the upper half turns the sign round, and the rest counts from the nearest end of its half.
  const Term upper = high & 0x1p63;
  Term near = (high << 1) | (low >> 63), far = low << 1;
  const Term flip = select((near & 0x1p63) != 0, near.integer(~std::uint64_t{0}), 0);
  near = near ^ flip;
  far = far ^ flip;
  const auto number = [](const Term& integer) { return small_integer_as_number(bitcast(integer, i64)); };
  // The first 32 bits are a number of their own, so that the product with pi is rounded once.
  constexpr double pi_high = 3.1415926535897931, pi_low = 1.2246467991473532e-16;
  const Term first = number(near >> 32), rest = fma(number(far >> 12), 0x1p-52, number(near & (0x1p32 - 1)));
  const Term magnitude = fma(first, pi_high * 0x1p-32, fma(rest, pi_high * 0x1p-64, fma(first, pi_low * 0x1p-32, x - x)));
  const Term sign = offset == 0 ? upper ^ (bits & 0x1p63) : upper;
  return bitcast(bitcast(magnitude, u64) | sign, f64);
}

/// sin(x + offset * pi), where offset is 0 or 1/2.
Term sine(const Term& x, double offset) {
  const Term angle = select(abs(x) < 0x1p30, angle_of_small(x, offset), angle_of_huge(x, offset));
  return sine_of_half_turn(
      angle, long_polynomial(fma(angle, angle, -1), {-0.0022790151921034934, -0.1505843394698784, 0.0077543815014217386,
                                                     -0.00018763710660650747, 2.6328536677186719e-06, -2.4104468389417047e-08,
                                                     1.5531549585305627e-10, -7.4252794781288084e-13, 2.7204790951889899e-15}));
}

}  // namespace

/// Below 2^-27 no term counts but x itself; others would be too small for normal numbers.
Term sin(const Term& x) { return select(abs(x) < 0x1p-27, x, sine(x, 0)); }
Term cos(const Term& x) { return sine(x, 0.5); }

Term atan(const Term& x) {
  return arctangent(x, 1.5707963267948965580, 6.1232339957367658e-17,
                    {-0.3333333333333307,   0.1999999999995144,    -0.14285714282573928,  0.11111111006990393,     -0.09090907002352429,
                     0.07692279831831879,   -0.0666640399687378,   0.05880527455592763,   -0.05253516964218576,    0.04722316853723704,
                     -0.042191649695115005, 0.03664162726417688,   -0.02990341053536696,  0.021984304831690504,    -0.013900044955504738,
                     0.007196139401750217,  -0.002884731636776977, 0.0008312560186150887, -0.00015214663698070766, 1.322365357603783e-05});
}

}  // namespace rlx::math::wide
