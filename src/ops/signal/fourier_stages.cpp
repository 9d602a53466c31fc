// Fourier transforms by other ops: products with matrices of roots of unity, and factors between them.
#include "ops/signal/fourier_stages.h"

#include <algorithm>
#include <functional>
#include <numbers>

#include "ir/sources.h"
#include "ops/signal/fourier_numbers.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using Number = std::complex<double>;
using Entry = std::function<Number(std::int64_t row, std::int64_t column)>;

// A transform of the axis in the middle of complex (rows, n, inner).
class Stages {
 public:
  Stages(Value x, bool inverse) : near_(x), inverse_(inverse) {}

  /// Stockham's form of Cooley and Tukey's algorithm: with n = p m, element j1 m + j2 goes to frequency k1 + p k2.
  Value of(Value x, double scale) const {  // (rows, n, inner)
    const Dim &rows = x.dim(0), &inner = x.dim(2);
    const std::int64_t n = x.dim(1).value(), p = factor(n), m = n / p;
    Value y = reshape(x, {rows, p, inner * m});
    y = p <= longest_sum ? summed(y, p, scale) : convolved(y, p, scale);
    if (m == 1) return reshape(y, x.shape());
    y = reshape(y, {rows, p, m, inner}) * reshape(constant(p, m, [&](auto k1, auto j2) { return root(k1 * j2, n); }), {p, m, 1});
    return reshape(of(reshape(transpose(y, {0, 2, 1, 3}), {rows, m, inner * p}), 1), x.shape());
  }

  /// The defining sum, with roots that are computed when the size is known.
  Value of_symbolic_length(Value x) const {
    const Dim& n = x.dim(1);
    const DType part = part_of(x);
    const Dims square{n, n};
    Value steps = rem(iota(x, square, i64, 0) * iota(x, square, i64, 1), dim_value(x, n, i64));
    Value size = dim_value(x, n, part), angle = cast(steps, part) / size * ((inverse_ ? 2 : -2) * std::numbers::pi);
    Value matrix = complex(cos(angle), sin(angle));
    if (inverse_) matrix = matrix / complex(size, zeros_like(size));
    return product(x, matrix);
  }

 private:
  static constexpr std::int64_t longest_stage = 32, longest_factor = 16, longest_sum = 128;

  static DType part_of(Value x) { return x.dtype() == c64 ? f32 : f64; }

  /// What one stage takes of a length: all of a short one, else the largest small divisor, else the smallest prime.
  static std::int64_t factor(std::int64_t n) {
    if (n <= longest_stage) return n;
    for (std::int64_t p = longest_factor; p > 1; --p)
      if (n % p == 0) return p;
    for (std::int64_t p = longest_factor; p * p <= n; ++p)
      if (n % p == 0) return p;
    return n;
  }

  Number root(std::int64_t k, std::int64_t n) const { return inverse_ ? root_of_unity(k, n) : std::conj(root_of_unity(k, n)); }

  Value constant(std::int64_t rows, std::int64_t columns, const Entry& entry) const {
    Array re(part_of(near_), {rows, columns}), im = re;
    im = Array(part_of(near_), {rows, columns});
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const Number number = entry(i / columns, i % columns);
      re.set_double(i, number.real()), im.set_double(i, number.imag());
    }
    return complex(make_constant(near_.graph(), re), make_constant(near_.graph(), im));
  }

  static Value product(Value x, Value matrix) { return transpose(dot(x, matrix, {1}, {0}), {0, 2, 1}); }

  Value summed(Value x, std::int64_t p, double scale) const {
    return product(x, constant(p, p, [&](auto j, auto k) { return scale * root(j * k, p); }));
  }

  /// Bluestein's algorithm: jk = (j^2 + k^2 - (k - j)^2) / 2 makes the sum a convolution with w(i) = e^(pi i i^2 / n), which transforms of
  /// a longer and rounder length compute.
  Value convolved(Value x, std::int64_t p, double scale) const {
    std::int64_t length = 1;
    while (length < 2 * p - 1) length *= 2;
    const auto chirp = [&](std::int64_t i) { return root(i * i % (2 * p), 2 * p); };
    Value chirps = constant(p, 1, [&](auto i, auto) { return chirp(i); });
    ComplexNumbers filter(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < length; ++i)
      if (const std::int64_t distance = std::min(i, length - i); distance < p)
        filter[static_cast<std::size_t>(i)] = scale / static_cast<double>(length) * std::conj(chirp(distance));
    filter = fourier_sums(filter, -1);
    Value y = Stages(near_, false).of(pad(x * chirps, {0, 0, 0}, {0, length - p, 0}), 1);
    y = Stages(near_, true).of(y * constant(length, 1, [&](auto k, auto) { return filter[static_cast<std::size_t>(k)]; }), 1);
    return slice_axis(y, 1, 0, p) * chirps;
  }

  Value near_;
  bool inverse_;
};

}  // namespace

Value fft_in_stages(Value x, std::int64_t axis, bool inverse) {
  const Dim n = x.dim(axis);
  if (n == Dim(0)) return x;
  Dim rows = 1, inner = 1;
  for (std::int64_t d = 0; d < x.rank(); ++d)
    if (d != axis) (d < axis ? rows : inner) = (d < axis ? rows : inner) * x.dim(d);
  const Stages stages(x, inverse);
  Value y = reshape(x, {rows, n, inner});
  y = n.is_static() ? stages.of(y, inverse ? 1 / static_cast<double>(n.value()) : 1) : stages.of_symbolic_length(y);
  return reshape(y, x.shape());
}

}  // namespace rlx
