// Functions of one element. Where MLX's own differ from ours, or are not defined, they are composed here.
#include <cmath>
#include <limits>

#include "backends/mlx/library/call.h"
#include "ir/extremum.h"

namespace rlx::mlx {
namespace {

bool is_float(const mx::array& x) { return mx::issubdtype(x.dtype(), mx::floating); }
bool is_signed(const mx::array& x) { return mx::issubdtype(x.dtype(), mx::signedinteger); }
int bits_of(const mx::array& x) { return static_cast<int>(x.itemsize()) * 8; }

/// Rules of one function of MLX.
template <mx::array (*function)(const mx::array&, mx::StreamOrDevice)>
Results unary(const Call& c) {
  return function(c.x[0], {});
}
template <mx::array (*function)(const mx::array&, const mx::array&, mx::StreamOrDevice)>
Results binary(const Call& c) {
  return function(c.x[0], c.x[1], {});
}

/// In f32 where MLX would compute in fewer bits.
template <mx::array (*function)(const mx::array&, mx::StreamOrDevice)>
Results widened(const Call& c) {
  return as(function(wide(c.x[0]), {}), c.x[0].dtype());
}

Results round(const Call& c) { return mx::round(c.x[0], 0); }

Results sign(const Call& c) {
  if (!is_float(c.x[0])) return mx::sign(c.x[0]);
  const mx::array stays = mx::logical_or(mx::isnan(c.x[0]), mx::equal(c.x[0], number_like(0, c.x[0])));
  return mx::where(stays, c.x[0], mx::sign(c.x[0]));
}

/// Unsigned numbers are their own; of complex ones MLX gives the real size.
Results abs(const Call& c) { return mx::abs(c.x[0]); }

Results negative(const Call& c) {
  if (mx::issubdtype(c.x[0].dtype(), mx::integer)) return mx::subtract(number_like(0, c.x[0]), c.x[0]);
  return mx::negative(c.x[0]);
}

Results logical_not(const Call& c) { return c.x[0].dtype() == mx::bool_ ? mx::logical_not(c.x[0]) : mx::bitwise_invert(c.x[0]); }

/// A divisor that is safe for MLX, which stops the process at -2^(n-1) / -1, and what to make of the others.
struct Divisor {
  explicit Divisor(const mx::array& z)
      : is_zero(mx::equal(z, number_like(0, z))),
        is_minus_one(is_signed(z) ? mx::equal(z, number_like(-1, z)) : mx::array(false)),
        safe(mx::where(mx::logical_or(is_zero, is_minus_one), number_like(1, z), z)) {}
  mx::array is_zero, is_minus_one, safe;
};

/// The rest of integers with the sign of x; MLX gives it that of the divisor.
mx::array rest_of(const mx::array& x, const Divisor& by) {
  mx::array rest = mx::remainder(x, by.safe), zero = number_like(0, x);
  if (!is_signed(x)) return rest;
  const mx::array off = mx::logical_and(mx::not_equal(rest, zero), mx::not_equal(mx::less(x, zero), mx::less(rest, zero)));
  return mx::where(off, mx::subtract(rest, by.safe), rest);
}

/// Quotients towards 0.
Results divide(const Call& c) {
  const mx::array &x = c.x[0], &z = c.x[1];
  if (!mx::issubdtype(x.dtype(), mx::integer)) return mx::divide(x, z);
  const Divisor by(z);
  const mx::array quotient = mx::floor_divide(mx::subtract(x, rest_of(x, by)), by.safe), zero = number_like(0, x);
  return mx::where(by.is_zero, mx::bitwise_invert(zero), mx::where(by.is_minus_one, mx::subtract(zero, x), quotient));
}

/// With the sign of x.
Results rem(const Call& c) {
  const mx::array &x = c.x[0], &z = c.x[1];
  const mx::array zero = number_like(0, x);
  if (!is_float(x)) {
    const Divisor by(z);
    return mx::where(by.is_zero, x, mx::where(by.is_minus_one, zero, rest_of(x, by)));
  }
  const mx::array rest = mx::remainder(mx::abs(wide(x)), mx::abs(wide(z)));
  const mx::array infinite = mx::logical_and(mx::isinf(z), mx::logical_not(mx::logical_or(mx::isinf(x), mx::isnan(x))));
  const mx::array with_sign = mx::where(mx::less(x, zero), mx::negative(rest), rest);
  const mx::array kept = mx::logical_or(infinite, mx::logical_and(mx::equal(x, zero), mx::not_equal(z, zero)));
  return mx::where(kept, x, as(with_sign, x.dtype()));
}

/// Which of two equal numbers: -0 is below +0.
mx::array negative_zero(const mx::array& x) {
  return mx::logical_and(mx::equal(x, number_like(0, x)), mx::less(mx::divide(number_like(1, x), x), number_like(0, x)));
}
template <bool larger>
Results extreme(const Call& c) {
  const mx::array &x = c.x[0], &z = c.x[1];
  if (x.dtype() == mx::bool_) return larger ? mx::logical_or(x, z) : mx::logical_and(x, z);
  const mx::array y = larger ? mx::maximum(x, z) : mx::minimum(x, z);
  if (!is_float(x)) return y;
  return mx::where(mx::equal(x, z), mx::where(negative_zero(x), larger ? z : x, larger ? x : z), y);
}

template <bool left>
Results shift(const Call& c) {
  const mx::array &x = c.x[0], &z = c.x[1];
  const mx::array zero = number_like(0, x);
  mx::array out = mx::greater_equal(z, number_like(bits_of(x), z));
  if (is_signed(x)) out = mx::logical_or(out, mx::less(z, zero));
  const mx::array safe = mx::where(out, zero, z);
  if (left) return mx::where(out, zero, mx::left_shift(x, safe));
  const mx::array fill = is_signed(x) ? mx::where(mx::less(x, zero), number_like(-1, x), zero) : zero;
  return mx::where(out, fill, mx::right_shift(x, safe));
}

Results select(const Call& c) { return mx::where(c.x[0], c.x[1], c.x[2]); }

/// Numbers beyond the integers of the type become its ends; C++ leaves them undefined.
mx::array saturated(const mx::array& x, DType to) {
  const mx::array truncated = mx::trunc(wide(x));
  const double most = static_cast<double>(largest_integer(to)), least = is_signed_int(to) ? -most - 1 : 0;
  // 2^63 and 2^64 where the largest integer is no float: what is not below it is the end itself.
  const double end = std::ldexp(1.0, static_cast<int>(std::ceil(std::log2(most))));
  const mx::array above = mx::greater_equal(truncated, number_like(end, truncated));
  const mx::array below = mx::less(truncated, number_like(least, truncated));
  const mx::array inside =
      mx::where(mx::logical_or(mx::isnan(truncated), mx::logical_or(above, below)), number_like(0, truncated), truncated);
  const mx::Dtype dtype = dtype_of(to);
  const mx::array ends =
      is_signed_int(to) ? mx::array(static_cast<std::int64_t>(largest_integer(to)), mx::int64) : mx::array(largest_integer(to), mx::uint64);
  const mx::array start = is_signed_int(to) ? as(mx::bitwise_invert(ends), dtype) : mx::array(0, dtype);
  return mx::where(above, as(ends, dtype), mx::where(below, start, as(inside, dtype)));
}

Results cast(const Call& c) {
  const DType to = c.result_type();
  const mx::array x = is_complex(c.type(0)) && !is_complex(to) && !is_bool(to) ? mx::real(c.x[0]) : c.x[0];
  if (is_bool(to)) return mx::not_equal(x, number_like(0, x));
  if (is_integer(to) && is_float(x)) return saturated(x, to);
  return as(x, dtype_of(to));
}

Results bitcast(const Call& c) { return mx::view(c.x[0], dtype_of(c.result_type())); }

Results complex(const Call& c) { return complex_of(c.x[0], c.x[1]); }

/// a + b, rounded, and what that rounds off.
std::pair<mx::array, mx::array> sum_and_rest(const mx::array& a, const mx::array& b) {
  const mx::array sum = mx::add(a, b), of_b = mx::subtract(sum, a);
  return {sum, mx::add(mx::subtract(a, mx::subtract(sum, of_b)), mx::subtract(b, of_b))};
}
/// The same of a * b, by halves of their bits (Dekker).
std::pair<mx::array, mx::array> product_and_rest(const mx::array& a, const mx::array& b) {
  const auto high = [](const mx::array& x) {
    const mx::array turned = mx::multiply(x, number_like(134217729, x));  // 2^27 + 1
    return mx::subtract(turned, mx::subtract(turned, x));
  };
  const mx::array product = mx::multiply(a, b), a1 = high(a), a2 = mx::subtract(a, a1), b1 = high(b), b2 = mx::subtract(b, b1);
  mx::array rest = mx::subtract(mx::multiply(a1, b1), product);
  rest = mx::add(mx::add(rest, mx::multiply(a1, b2)), mx::multiply(a2, b1));
  return {product, mx::add(rest, mx::multiply(a2, b2))};
}
/// a + b, or of the two numbers that it lies between the one whose last bit is set: it is rounded once more (Boldo and Melquiond).
mx::array sum_to_odd(const mx::array& a, const mx::array& b) {
  const auto [sum, rest] = sum_and_rest(a, b);
  const mx::array bits = mx::view(sum, mx::int64), one = mx::array(1, mx::int64), zero = number_like(0, sum);
  const mx::array is_exact = mx::logical_or(mx::equal(rest, zero), mx::equal(mx::bitwise_and(bits, one), one));
  const mx::array outwards = mx::equal(mx::greater(rest, zero), mx::greater(sum, zero));
  return mx::where(is_exact, sum, mx::view(mx::add(bits, mx::where(outwards, one, mx::negative(one))), mx::float64));
}

mx::array fma_f64(const mx::array& x, const mx::array& y, const mx::array& z) {
  const auto [product, product_rest] = product_and_rest(x, y);
  const auto [low, low_rest] = sum_and_rest(z, product_rest);
  const auto [high, high_rest] = sum_and_rest(product, low);
  const mx::array once = mx::add(high, sum_to_odd(high_rest, low_rest));
  // Halves of the largest numbers are infinite.
  const mx::array is_finite = mx::logical_and(mx::isfinite(x), mx::isfinite(y)), twice = mx::add(mx::multiply(x, y), z);
  return mx::where(mx::isfinite(once), once, mx::where(mx::logical_and(mx::isinf(z), is_finite), z, twice));
}

/// The product of two f32 is exact in f64.
Results fma(const Call& c) {
  if (c.x[0].dtype() == mx::float64) return fma_f64(c.x[0], c.x[1], c.x[2]);
  const mx::StreamContext has_f64(mx::Device::cpu);
  const mx::Dtype dtype = c.x[0].dtype() == mx::float32 ? mx::float64 : mx::float32;
  return as(mx::add(mx::multiply(as(c.x[0], dtype), as(c.x[1], dtype)), as(c.x[2], dtype)), c.x[0].dtype());
}

/// MLX's own is good to 1.5e-7, which is too much for small numbers: these are x P(x^2), after Cephes' ndtrf.
Results erf(const Call& c) {
  constexpr double coefficients[] = {7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2,
                                     1.128358514861418e-1, -3.761262582423300e-1, 1.128379165726710};
  const mx::array x = wide(c.x[0]), square = mx::square(x);
  mx::array y = number_like(coefficients[0], x);
  for (const double coefficient : std::span(coefficients).subspan(1)) y = mx::add(mx::multiply(y, square), number_like(coefficient, x));
  return as(mx::where(mx::less(square, number_like(1, x)), mx::multiply(x, y), mx::erf(x)), c.x[0].dtype());
}

constexpr std::string_view in_f32 = "MLX computes it in f32";
bool is_not_f64(const Graph&, const Node& node) { return node.results[0].dtype != f64; }

constexpr std::string_view of_reals = "MLX has it for real numbers";
bool is_real(const Graph&, const Node& node) { return !is_complex(node.results[0].dtype); }

}  // namespace

Rows scalar_rows() {
  static constexpr Row<Rule> rows[] = {
      {"neg", negative},
      {"abs", abs},
      {"sign", sign},
      {"floor", unary<mx::floor>},
      {"round", round},
      {"exp", widened<mx::exp>, is_not_f64, in_f32},
      {"expm1", widened<mx::expm1>, is_real, of_reals},
      {"log", widened<mx::log>},
      {"log1p", widened<mx::log1p>, is_real, of_reals},
      {"sqrt", widened<mx::sqrt>},
      {"rsqrt", widened<mx::rsqrt>, is_real, of_reals},
      {"sin", widened<mx::sin>, is_not_f64, in_f32},
      {"cos", widened<mx::cos>, is_not_f64, in_f32},
      {"tanh", widened<mx::tanh>, is_not_f64, in_f32},
      {"atan", widened<mx::arctan>, is_real, of_reals},
      {"erf", erf, is_not_f64, in_f32},
      {"logical_not", logical_not},
      {"add", binary<mx::add>},
      {"sub", binary<mx::subtract>},
      {"mul", binary<mx::multiply>},
      {"div", divide},
      {"rem", rem},
      {"pow", binary<mx::power>},
      {"max", extreme<true>},
      {"min", extreme<false>},
      {"logical_and", binary<mx::bitwise_and>},
      {"logical_or", binary<mx::bitwise_or>},
      {"logical_xor", binary<mx::bitwise_xor>},
      {"shl", shift<true>},
      {"shr", shift<false>},
      {"eq", binary<mx::equal>},
      {"ne", binary<mx::not_equal>},
      {"lt", binary<mx::less>},
      {"le", binary<mx::less_equal>},
      {"gt", binary<mx::greater>},
      {"ge", binary<mx::greater_equal>},
      {"select", select},
      {"cast", cast},
      {"bitcast", bitcast},
      {"complex", complex},
      {"real", unary<mx::real>},
      {"imag", unary<mx::imag>},
      {"fma", fma},
  };
  return rows;
}

}  // namespace rlx::mlx
