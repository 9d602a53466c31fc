// Fourier transforms.
#include <cmath>
#include <complex>
#include <numbers>

#include "ir/op.h"
#include "ops/axis_lines.h"
#include "ops/signal/fourier_numbers.h"
#include "ops/signal/fourier_stages.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Numbers = ComplexNumbers;

Numbers read_line(const Array& x, const AxisLines& lines, std::int64_t line) {
  Numbers values;
  for (std::int64_t i = 0; i < lines.length; ++i) values.push_back(x.get_complex(lines.begin(line) + i * lines.stride));
  return values;
}

struct Fft {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "fft";
  static constexpr std::string_view formula = "y[k] = sum over j of x[j] * e^(-2 pi i j k / n) along `axis`; inverse: with +, divided by n";
  Axis axis = -1;
  bool inverse = false;
  static auto fields() { return Fields<&Fft::axis, &Fft::inverse>{}; }
  static Type infer(const Fft&, const Type& x) {
    if (!is_complex(x.dtype)) fail("rlx.fft: {} is not complex", x.to_string());
    return x;
  }
  static void evaluate(const Fft& op, std::span<const Array> x, std::span<Array> y) {
    const AxisLines lines(x[0].shape(), op.axis);
    const double scale = op.inverse ? static_cast<double>(lines.length) : 1;
    for (std::int64_t line = 0; line < lines.count; ++line) {
      const Numbers values = fourier_sums(read_line(x[0], lines, line), op.inverse ? 1 : -1);
      for (std::int64_t i = 0; i < lines.length; ++i)
        y[0].set_complex(lines.begin(line) + i * lines.stride, values[static_cast<std::size_t>(i)] / scale);
    }
  }
  static Value expansion(const Fft& op, Value x) { return fft_in_stages(x, op.axis, op.inverse); }
  // The matrix of the transform is symmetric.
  static Values transpose(const Fft& op, std::span<const Value>, const std::vector<bool>&, std::span<const Value> dy) {
    return {Op<Fft>()(op, dy[0])};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {c64, c128})
      for (std::int64_t n : {1, 7, 8, 12}) all.push_back({{{{t, {2, n}}}}, attrs_of(Fft{1, n == 8}), 1e-6});
    all.push_back({{{{c64, {6, 3}}}}, attrs_of(Fft{0, true}), 1e-6});
    all.push_back({{{{c64, {0, 3}}}}, attrs_of(Fft{0}), 0});
    all.push_back({{{{c128, {2, 67}}}}, attrs_of(Fft{1}), 1e-12, false});
    return all;
  }
};
const Op<Fft> fft_op;

// Whether frequencies of a real signal of length n are their own mirror images.
Value own_mirror_images(Value z, std::int64_t axis, std::int64_t n) {
  Value k = iota(z, z.shape(), i64, axis), own = eq(k, scalar(z, 0, i64));
  return n % 2 == 0 ? logical_or(own, eq(k, scalar(z, std::floor(static_cast<double>(n) / 2), i64))) : own;
}

// conj(z) times `edges` at the frequencies that are their own mirror images, and times `others` at all others, of a real signal of
// length n.
Value conjugate_by(Value z, std::int64_t axis, std::int64_t n, double edges, double others) {
  const DType part = z.dtype() == c64 ? f32 : f64;
  Value weight = select(own_mirror_images(z, axis, n), scalar(z, edges, part), scalar(z, others, part));
  return complex(real(z) * weight, -(imag(z) * weight));
}

struct Rfft {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "rfft";
  static constexpr std::string_view formula =
      "the first n / 2 + 1 frequencies of real x: y[k] = sum over j of x[j] * e^(-2 pi i j k / n) along `axis`";
  Axis axis = -1;
  static auto fields() { return Fields<&Rfft::axis>{}; }
  static Type infer(const Rfft& op, const Type& x) {
    if (x.dtype != f32 && x.dtype != f64) fail("rlx.rfft: {} (allowed: f32, f64)", x.to_string());
    const std::int64_t n = x.dim(op.axis).value();
    if (n < 1) fail("rlx.rfft: axis {} of {} is empty (allowed: 1 element or more)", op.axis.value, x.to_string());
    Dims shape = x.shape;
    shape[static_cast<std::size_t>(op.axis.value)] = n / 2 + 1;
    return {x.dtype == f64 ? c128 : c64, shape};
  }
  static void evaluate(const Rfft& op, std::span<const Array> x, std::span<Array> y) {
    const AxisLines from(x[0].shape(), op.axis), to(y[0].shape(), op.axis);
    for (std::int64_t line = 0; line < from.count; ++line) {
      const Numbers values = fourier_sums(read_line(x[0], from, line), -1);
      for (std::int64_t i = 0; i < to.length; ++i) y[0].set_complex(to.begin(line) + i * to.stride, values[static_cast<std::size_t>(i)]);
    }
  }
  static Value expansion(const Rfft& op, Value x) {
    return slice_axis(fft_in_stages(complex(x, zeros_like(x)), op.axis, false), op.axis, 0, x.dim(op.axis).value() / 2 + 1);
  }
  static Values transpose(const Rfft& op, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    const std::int64_t n = x[0].dim(op.axis).value();
    const auto whole = static_cast<double>(n);
    return {irfft(conjugate_by(dy[0], op.axis, n, whole, whole / 2), n, op.axis)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (std::int64_t n : {1, 2, 7, 8, 12}) all.push_back({{{{n == 7 ? f64 : f32, {2, n}}}}, attrs_of(Rfft{1}), 1e-6});
    all.push_back({{{{f64, {6, 3}}}}, attrs_of(Rfft{0}), 1e-12});
    return all;
  }
};
const Op<Rfft> rfft_op;

struct Irfft {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "irfft";
  static constexpr std::string_view formula =
      "the real signal of length `n` whose first n / 2 + 1 frequencies along `axis` are given: the inverse of rfft; the imaginary parts of "
      "frequency 0, and of n / 2 where n is even, count as 0";
  std::int64_t n = 1;
  Axis axis = -1;
  static auto fields() { return Fields<&Irfft::n, &Irfft::axis>{}; }
  static Type infer(const Irfft& op, const Type& z) {
    if (!is_complex(z.dtype)) fail("rlx.irfft: {} is not complex", z.to_string());
    if (op.n < 1 || !(z.dim(op.axis) == Dim(op.n / 2 + 1)))
      fail("rlx.irfft: length {} needs {} frequencies along axis {} of {}", op.n, op.n / 2 + 1, op.axis.value, z.to_string());
    Dims shape = z.shape;
    shape[static_cast<std::size_t>(op.axis.value)] = op.n;
    return {z.dtype == c64 ? f32 : f64, shape};
  }
  static void evaluate(const Irfft& op, std::span<const Array> x, std::span<Array> y) {
    const AxisLines from(x[0].shape(), op.axis), to(y[0].shape(), op.axis);
    for (std::int64_t line = 0; line < from.count; ++line) {
      Numbers values = read_line(x[0], from, line);
      values[0].imag(0);
      if (op.n % 2 == 0) values.back().imag(0);
      for (std::int64_t i = from.length; i < op.n; ++i) values.push_back(std::conj(values[static_cast<std::size_t>(op.n - i)]));
      values = fourier_sums(values, 1);
      for (std::int64_t i = 0; i < op.n; ++i)
        y[0].set_double(to.begin(line) + i * to.stride, values[static_cast<std::size_t>(i)].real() / static_cast<double>(op.n));
    }
  }
  static Value expansion(const Irfft& op, Value z) {
    const Value own = own_mirror_images(z, op.axis, op.n), whole = complex(real(z), select(own, zeros_like(imag(z)), imag(z)));
    const Value mirrored = flip(conj(slice_axis(whole, op.axis, 1, op.n - op.n / 2)), {op.axis});
    return real(fft_in_stages(concat({whole, mirrored}, op.axis), op.axis, true));
  }
  // The pairing of dz with z is bilinear: that of a frequency and its mirror image is twice the real part of one product.
  static Values transpose(const Irfft& op, std::span<const Value>, const std::vector<bool>&, std::span<const Value> dy) {
    const double once = 1 / static_cast<double>(op.n);
    return {conjugate_by(rfft(dy[0], op.axis), op.axis, op.n, once, 2 * once)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (std::int64_t n : {1, 2, 7, 8, 12}) all.push_back({{{{n == 7 ? c128 : c64, {2, n / 2 + 1}}}}, attrs_of(Irfft{n, 1}), 1e-6});
    all.push_back({{{{c128, {4, 3}}}}, attrs_of(Irfft{6, 0}), 1e-12});
    return all;
  }
};
const Op<Irfft> irfft_op;

}  // namespace

/// The discrete Fourier transform of complex x along `axis`; inverse divides by the length. The shape stays; of an empty axis it is empty.
/// Throws Error when x is not complex.
Value fft(Operand x, std::int64_t axis /*= -1*/, bool inverse /*= false*/) { return fft_op({axis, inverse}, x); }

/// The transform along each of `axes`, one after the other; of all axes where none is named.
Value fftn(Operand x, std::vector<std::int64_t> axes /*= {}*/, bool inverse /*= false*/) {
  Value y = x;
  if (axes.empty())
    for (std::int64_t axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) y = fft(y, *axis, inverse);
  return y;
}

/// The first n / 2 + 1 frequencies of a real signal (f32 or f64) of length n, 1 or more, along `axis`, whose size becomes n / 2 + 1. Throws
/// Error for other types, and for an axis that is empty or of symbolic size.
Value rfft(Operand x, std::int64_t axis /*= -1*/) { return rfft_op({axis}, x); }

/// The real signal of length n with the given frequencies along `axis`, whose size is n / 2 + 1 (else Error) and becomes n. The imaginary
/// parts of frequency 0, and of n / 2 where n is even, count as 0.
Value irfft(Operand z, std::int64_t n, std::int64_t axis /*= -1*/) { return irfft_op({n, axis}, z); }

}  // namespace rlx
