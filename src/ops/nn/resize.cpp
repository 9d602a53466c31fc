// Resampling of the last axes of a tensor, one axis after the other.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "ir/sources.h"
#include "ops/wide.h"

namespace rlx {
namespace {

constexpr std::int64_t largest_axis = std::int64_t{1} << 30;  // products of two sizes stay far from 64 bits

std::int64_t static_size(const Dim& size, const Type& x) {
  if (!size.is_static())
    fail("rlx.resize: size {} of {} is symbolic (allowed: static sizes, or a whole multiple in nearest mode)", size.to_string(),
         x.to_string());
  if (size.value() > largest_axis)
    fail("rlx.resize: size {} of {} is too large (allowed: 1..{})", size.value(), x.to_string(), largest_axis);
  return size.value();
}

// The number of times that each element is taken, where nearest mode needs no sizes.
std::optional<std::int64_t> whole_factor(const Dim& out, const Dim& in) {
  const auto factor = Dim::exact_div(out, in);
  return factor && factor->is_static() ? std::optional(factor->value()) : std::nullopt;
}

// Elements floor((start + o * step) / divisor) for o = 0..count-1: each element stands `divisor` times, every step-th is taken.
Value strided(Value x, std::int64_t axis, std::int64_t start, std::int64_t step, std::int64_t divisor, std::int64_t count) {
  return slice_axis(repeat(x, divisor, axis), axis, start, start + (count - 1) * step + 1, step);
}

// Corners on corners: the element nearest to o * (in - 1) / (out - 1), the lower one of two.
Value nearest_between_corners(Value x, std::int64_t axis, std::int64_t in, std::int64_t out) {
  if (in == 1) return repeat(x, out, axis);
  if (out == 1) return slice_axis(x, axis, 0, 1);
  return strided(x, axis, out - 2, 2 * (in - 1), 2 * (out - 1), out);  // ceil(o (in - 1) / (out - 1) - 1 / 2) in integers
}

// The element that holds the result element o, or with `centred` its centre, where `scale` result elements lie in one.
Value nearest_by_scale(Value x, std::int64_t axis, const Dim& out, double scale, bool centred) {
  const std::int64_t from = static_size(x.dim(axis), x.type()), to = static_size(out, x.type());
  Array places(i64, {to});
  for (std::int64_t o = 0; o < to; ++o) {
    const double at = (static_cast<double>(o) + (centred ? 0.5 : 0)) / scale;
    places.set_int(o, static_cast<std::int64_t>(std::min(std::floor(at), static_cast<double>(from - 1))));
  }
  return take(x, make_constant(x.graph(), places), axis);
}

Value nearest(Value x, std::int64_t axis, const Dim& out, bool centred, bool align_corners) {
  const Dim& in = x.dim(axis);
  if (!align_corners)
    if (auto factor = whole_factor(out, in)) return repeat(x, *factor, axis);
  const std::int64_t from = static_size(in, x.type()), to = static_size(out, x.type());
  if (align_corners) return nearest_between_corners(x, axis, from, to);
  const std::int64_t scale = centred ? 2 : 1;
  return strided(x, axis, centred ? from : 0, scale * from, scale * to, to);
}

// How far the neighbours lie that count.
double radius(ResizeMode mode) {
  switch (mode) {
    case ResizeMode::linear: return 1;
    case ResizeMode::lanczos3: return 3;
    case ResizeMode::lanczos5: return 5;
    default: return 2;
  }
}
bool is_lanczos(ResizeMode mode) { return mode == ResizeMode::lanczos3 || mode == ResizeMode::lanczos5; }

double sinc_of(double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

// The weight of a neighbour at `distance`: the triangle, Keys' cubic with the coefficient a, or Lanczos' windowed sinc.
double kernel(ResizeMode mode, double a, double distance) {
  const double d = std::abs(distance);
  if (mode == ResizeMode::linear) return std::max(0.0, 1 - d);
  if (is_lanczos(mode)) return d < radius(mode) ? sinc_of(d) * sinc_of(d / radius(mode)) : 0;
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// One axis of a resize that weighs neighbours. `step` is how many source elements one result element stands for.
struct Line {
  std::int64_t in, out;
  double step;
  ResizeOptions options;

  // With antialias PyTorch takes no more than the step from align_corners.
  double source_position(std::int64_t o) const {
    if (options.align_corners && !options.antialias)
      return out > 1 ? static_cast<double>(o) * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    return (static_cast<double>(o) + 0.5) * step - 0.5;
  }
  /// The weights of the source elements for one result element. Neighbours outside count for the border element, or not at all, and then
  /// the others are scaled to the sum 1.
  std::vector<double> weights(std::int64_t o) const {
    const bool only_inside = options.exclude_outside || options.antialias || is_lanczos(options.mode);
    const double at = source_position(o), stretch = options.antialias ? std::max(1.0, step) : 1;
    const double reach = stretch * radius(options.mode);
    std::vector<double> row(static_cast<std::size_t>(in));
    double total = 0;
    const auto last = static_cast<std::int64_t>(std::floor(at + reach));
    for (auto j = static_cast<std::int64_t>(std::ceil(at - reach)); j <= last; ++j) {
      if (only_inside && (j < 0 || j >= in)) continue;
      const double weight = kernel(options.mode, options.cubic_a, (static_cast<double>(j) - at) / stretch);
      row[static_cast<std::size_t>(std::clamp<std::int64_t>(j, 0, in - 1))] += weight;
      total += weight;
    }
    if (only_inside && total != 0)
      for (double& weight : row) weight /= total;
    return row;
  }
};

// The matrix (out, in) whose rows hold the weights of every result element.
Array interpolation_matrix(DType dtype, const Line& line) {
  Array matrix(dtype, {line.out, line.in});
  for (std::int64_t o = 0; o < line.out; ++o) {
    const std::vector<double> row = line.weights(o);
    for (std::int64_t i = 0; i < line.in; ++i) matrix.set_double(o * line.in + i, row[static_cast<std::size_t>(i)]);
  }
  return matrix;
}

Value interpolated(Value x, std::int64_t axis, const Dim& out, double scale, const ResizeOptions& options) {
  const std::int64_t from = static_size(x.dim(axis), x.type()), to = static_size(out, x.type());
  const auto ratio = [](std::int64_t a, std::int64_t b) { return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0; };
  const double step = options.align_corners ? ratio(from - 1, to - 1) : scale > 0 ? 1 / scale : ratio(from, to);
  Value matrix = make_constant(x.graph(), interpolation_matrix(x.dtype(), {from, to, step, options}));
  return move_axis(dot(x, matrix, {axis}, {1}), -1, axis);
}

struct Resize {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "resize";
  static constexpr std::string_view formula =
      "the last axes resampled to `sizes`; half-pixel centres (nearest: element floor(o in / out), or floor(o / scale)), or corners on "
      "corners with "
      "align_corners (nearest: the nearest element, the lower of two; antialias: half-pixel centres with the step of align_corners); cubic "
      "by Keys with the coefficient a; lanczos by sinc(d) "
      "sinc(d / 3) or sinc(d) sinc(d / 5); antialias stretches the kernel over a result element";
  Dims sizes;
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false, antialias = false, exclude_outside = false;
  double cubic_a = -0.75;
  Array scales{f64, {0}};  // result elements for one source element, where sizes alone do not say it
  static auto fields() {
    return Fields<&Resize::sizes, &Resize::mode, &Resize::align_corners, &Resize::antialias, &Resize::exclude_outside, &Resize::cubic_a,
                  &Resize::scales>{};
  }

  static void check(const Resize& op, const Type& x) {
    const auto count = static_cast<int>(op.sizes.size());
    if (count > x.rank()) fail("rlx.resize: {} sizes for {}", count, x.to_string());
    if (!is_nearest(op) && !is_float(x.dtype))
      fail("rlx.resize: {} is not allowed (allowed: floats, or any type in nearest mode)", x.to_string());
    if (op.align_corners && op.mode == ResizeMode::nearest_exact)
      fail(
          "rlx.resize: align_corners with mode 'nearest_exact', which has half-pixel centres (allowed: nearest, linear, cubic, lanczos3, "
          "lanczos5)");
    if (is_nearest(op) && (op.antialias || op.exclude_outside))
      fail("rlx.resize: antialias or exclude_outside with mode '{}' (allowed: linear, cubic, lanczos3, lanczos5)",
           enum_words(op.mode)[static_cast<std::size_t>(op.mode)]);
    if (op.align_corners && op.scales.size() > 0) fail("rlx.resize: align_corners with scales (allowed: one of them)");
    for (int i = 0; i < count; ++i)
      for (const Dim& size : {op.sizes[static_cast<std::size_t>(i)], x.dim(x.rank() - count + i)})
        if (!(size - 1).known_non_negative()) fail("rlx.resize: {} to {} (allowed: sizes >= 1)", x.to_string(), to_string(op.sizes));
    check_scales(op, x);
  }
  static void check_scales(const Resize& op, const Type& x) {
    const auto count = static_cast<std::int64_t>(op.sizes.size());
    if (op.scales.size() != 0 && op.scales.size() != count)
      fail("rlx.resize: {} scales for {} sizes (allowed: none, or one for each)", op.scales.size(), count);
    for (std::int64_t i = 0; i < op.scales.size(); ++i) {
      const std::int64_t in = static_size(x.dim(static_cast<int>(x.rank() - count + i)), x);
      const std::int64_t out = static_size(op.sizes[static_cast<std::size_t>(i)], x);
      const double scale = op.scales.get_double(i), product = std::floor(static_cast<double>(in) * scale);
      if (product != static_cast<double>(out))
        fail("rlx.resize: size {} with scale {} of {} (allowed: {}, their product rounded down)", out, scale, in, product);
    }
  }
  // Written out, because the body of a graph that is only read or checked would compute its matrices.
  static Type infer(const Resize& op, const Type& x) {
    check(op, x);
    Type result = x;
    const std::size_t first = x.shape.size() - op.sizes.size();
    for (std::size_t i = 0; i < op.sizes.size(); ++i) {
      const Dim &in = x.shape[first + i], &out = op.sizes[i];
      if (!(in == out) && !(is_nearest(op) && !op.align_corners && whole_factor(out, in))) static_size(in, x), static_size(out, x);
      result.shape[first + i] = out;
    }
    return result;
  }
  static bool is_nearest(const Resize& op) { return op.mode == ResizeMode::nearest || op.mode == ResizeMode::nearest_exact; }
  static Value along(const Resize& op, Value x) {
    const std::int64_t first = x.rank() - static_cast<std::int64_t>(op.sizes.size());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(op.sizes.size()); ++i) {
      const Dim& out = op.sizes[static_cast<std::size_t>(i)];
      const double scale = op.scales.size() > 0 ? op.scales.get_double(i) : 0;
      const bool has_no_scale = scale == 0 || scale == 1 || op.mode == ResizeMode::linear || op.antialias;  // PyTorch's copy equal sizes
      if (out == x.dim(first + i) && has_no_scale) continue;
      if (is_nearest(op) && scale > 0) x = nearest_by_scale(x, first + i, out, scale, op.mode == ResizeMode::nearest_exact);
      else if (is_nearest(op)) x = nearest(x, first + i, out, op.mode == ResizeMode::nearest_exact, op.align_corners);
      else x = interpolated(x, first + i, out, scale, {op.mode, op.align_corners, op.antialias, op.exclude_outside, op.cubic_a, {}});
    }
    return x;
  }
  static Value body(const Resize& op, Value x) {
    if (is_nearest(op)) return along(op, x);
    return in_wide(name, x, [&](Value v) { return along(op, v); });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (ResizeMode mode : {ResizeMode::nearest, ResizeMode::nearest_exact, ResizeMode::linear, ResizeMode::cubic})
      for (const Dims& sizes : {Dims{6, 8}, Dims{5, 3}, Dims{2, 7}})
        all.push_back({{{{f32, {2, 3, 4}}}}, attrs_of(Resize{.sizes = sizes, .mode = mode}), 4e-6});
    for (const Dims& sizes : {Dims{7, 3}, Dims{1, 8}})
      all.push_back({{{{f32, {2, 3, 5}}}}, attrs_of(Resize{.sizes = sizes, .align_corners = true})});
    for (ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic})
      for (DType t : {f32, f64, bf16})
        all.push_back({{{{t, {2, 5}}}}, attrs_of(Resize{.sizes = {8}, .mode = mode, .align_corners = true}), 4e-6});
    all.push_back({{{{f32, {2, 7, 5}}}}, attrs_of(Resize{{3, 8}, ResizeMode::linear, true, true}), 4e-6});
    for (ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic, ResizeMode::lanczos3, ResizeMode::lanczos5}) {
      all.push_back({{{{f32, {2, 7, 5}}}}, attrs_of(Resize{.sizes = {3, 8}, .mode = mode, .antialias = true, .cubic_a = -0.5}), 4e-6});
      all.push_back({{{{f32, {2, 7}}}}, attrs_of(Resize{.sizes = {4}, .mode = mode, .exclude_outside = true}), 4e-6});
      Array scales(f64, {1});
      scales.set_double(0, 1.7);
      all.push_back({{{{f32, {2, 5}}}}, attrs_of(Resize{.sizes = {8}, .mode = mode, .scales = scales}), 4e-6});
    }
    all.push_back({{{{u8, {1, 2, 3, 3}}, 0, 200}}, attrs_of(Resize{.sizes = {6, 5}}), 0, false});
    for (ResizeMode mode : {ResizeMode::nearest, ResizeMode::nearest_exact}) {
      Array scales(f64, {1});
      scales.set_double(0, 1.7);
      all.push_back({{{{f32, {2, 5}}}}, attrs_of(Resize{.sizes = {8}, .mode = mode, .scales = scales})});
    }
    return all;
  }
};
const Op<Resize> resize_op;

}  // namespace

/// The last axes of x (the spatial ones of [N, C, spatial...]) resampled to `sizes`; the modes agree with PyTorch's interpolate. Nearest
/// takes any dtype and copies elements exactly; with align_corners, which PyTorch lacks there, it is ONNX's align_corners with
/// round_prefer_floor. With antialias, align_corners is PyTorch's too: a step of (in - 1) / (out - 1) between half-pixel centres, which
/// puts no corner on another. lanczos3 and lanczos5 with antialias are those of jax.image.resize. Sizes are static, except for whole
/// multiples in nearest mode without align_corners. A non-finite element spreads over the whole line, but in nearest mode. Throws Error for
/// options that do not go together; see ResizeOptions.
Value resize(Operand x, Dims sizes, ResizeOptions options) {
  Array scales(f64, {static_cast<std::int64_t>(options.scales.size())});
  for (std::size_t i = 0; i < options.scales.size(); ++i) scales.set_double(static_cast<std::int64_t>(i), options.scales[i]);
  return resize_op({sizes, options.mode, options.align_corners, options.antialias, options.exclude_outside, options.cubic_a, scales}, x);
}

/// The same without antialiasing: nearest, nearest_exact, linear (bilinear, trilinear), cubic (bicubic, a = -0.75), lanczos3 or lanczos5.
Value resize(Operand x, Dims sizes, ResizeMode mode /*= ResizeMode::nearest*/, bool align_corners /*= false*/) {
  return resize(x, sizes, ResizeOptions{.mode = mode, .align_corners = align_corners});
}

/// Every element of the last two axes twice in both directions: [N, C, H, W] gives [N, C, 2H, 2W].
Value resize_nearest_2x(Operand x) {
  if (x.rank() < 2) fail("rlx.resize_nearest_2x: {} has fewer than 2 axes", x.type().to_string());
  return resize(x, {x.dim(-2) * 2, x.dim(-1) * 2}, ResizeMode::nearest);
}

}  // namespace rlx
