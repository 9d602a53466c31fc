// Resampling of the last axes of a tensor, one axis after the other.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/sources.h"
#include "ops/wide.h"

namespace rlx {
namespace {

constexpr double cubic_a = -0.75;  // Keys' parameter, as PyTorch and ONNX take it

constexpr std::int64_t largest_size = std::int64_t{1} << 30;  // products of two sizes stay far from 64 bits

std::int64_t static_size(const Dim& size, const Type& x) {
  if (!size.is_static())
    fail("rlx.resize: size {} of {} is symbolic (allowed: static sizes, or a whole multiple in nearest mode)", size.to_string(),
         x.to_string());
  if (size.value() > largest_size)
    fail("rlx.resize: size {} of {} is too large (allowed: 1..{})", size.value(), x.to_string(), largest_size);
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

Value nearest(Value x, std::int64_t axis, const Dim& out, bool centred) {
  const Dim& in = x.dim(axis);
  if (auto factor = whole_factor(out, in)) return repeat(x, *factor, axis);
  const std::int64_t from = static_size(in, x.type()), to = static_size(out, x.type());
  const std::int64_t scale = centred ? 2 : 1;
  return strided(x, axis, centred ? from : 0, scale * from, scale * to, to);
}

// Weights of the neighbours floor(at) - reach + 1 ... floor(at) + reach.
std::vector<double> neighbour_weights(ResizeMode mode, double fraction) {
  if (mode == ResizeMode::linear) return {1 - fraction, fraction};
  auto near = [](double d) { return ((cubic_a + 2) * d - (cubic_a + 3)) * d * d + 1; };
  auto far = [](double d) { return ((cubic_a * d - 5 * cubic_a) * d + 8 * cubic_a) * d - 4 * cubic_a; };
  return {far(1 + fraction), near(fraction), near(1 - fraction), far(2 - fraction)};
}

double source_position(std::int64_t o, std::int64_t in, std::int64_t out, bool align_corners) {
  if (align_corners) return out > 1 ? static_cast<double>(o) * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  return (static_cast<double>(o) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
}

// The matrix (out, in) whose rows hold the weights of every result element; neighbours outside count for the border element.
Array interpolation_matrix(DType dtype, std::int64_t in, std::int64_t out, ResizeMode mode, bool align_corners) {
  Array matrix(dtype, {out, in});
  std::vector<double> row(static_cast<std::size_t>(in));
  for (std::int64_t o = 0; o < out; ++o) {
    std::fill(row.begin(), row.end(), 0);
    const double at = source_position(o, in, out, align_corners);
    const std::vector<double> weights = neighbour_weights(mode, at - std::floor(at));
    auto neighbour = static_cast<std::int64_t>(std::floor(at)) - static_cast<std::int64_t>(weights.size() / 2) + 1;
    for (double weight : weights) row[static_cast<std::size_t>(std::clamp<std::int64_t>(neighbour++, 0, in - 1))] += weight;
    for (std::int64_t i = 0; i < in; ++i) matrix.set_double(o * in + i, row[static_cast<std::size_t>(i)]);
  }
  return matrix;
}

Value interpolated(Value x, std::int64_t axis, const Dim& out, ResizeMode mode, bool align_corners) {
  const std::int64_t from = static_size(x.dim(axis), x.type()), to = static_size(out, x.type());
  Value matrix = make_constant(x.graph(), interpolation_matrix(x.dtype(), from, to, mode, align_corners));
  return move_axis(dot(x, matrix, {axis}, {1}), -1, axis);
}

struct Resize {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "resize";
  static constexpr std::string_view formula =
      "the last axes resampled to `sizes`; half-pixel centres, or corners on corners with align_corners; cubic has a = -0.75";
  Dims sizes;
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;
  static auto fields() { return Fields<&Resize::sizes, &Resize::mode, &Resize::align_corners>{}; }

  static void check(const Resize& op, const Type& x) {
    const auto count = static_cast<int>(op.sizes.size());
    if (count > x.rank()) fail("rlx.resize: {} sizes for {}", count, x.to_string());
    if (!is_nearest(op) && !is_float(x.dtype))
      fail("rlx.resize: {} is not allowed (allowed: floats, or any type in nearest mode)", x.to_string());
    if (op.align_corners && is_nearest(op))
      fail("rlx.resize: align_corners with mode '{}' (allowed: linear, cubic)", enum_words(op.mode)[static_cast<std::size_t>(op.mode)]);
    for (int i = 0; i < count; ++i)
      for (const Dim& size : {op.sizes[static_cast<std::size_t>(i)], x.dim(x.rank() - count + i)})
        if (!(size - 1).known_non_negative()) fail("rlx.resize: {} to {} (allowed: sizes >= 1)", x.to_string(), to_string(op.sizes));
  }
  // Written out, because the body of a graph that is only read or checked would compute its matrices.
  static Type infer(const Resize& op, const Type& x) {
    check(op, x);
    Type result = x;
    const std::size_t first = x.shape.size() - op.sizes.size();
    for (std::size_t i = 0; i < op.sizes.size(); ++i) {
      const Dim &in = x.shape[first + i], &out = op.sizes[i];
      if (!(in == out) && !(is_nearest(op) && whole_factor(out, in))) static_size(in, x), static_size(out, x);
      result.shape[first + i] = out;
    }
    return result;
  }
  static bool is_nearest(const Resize& op) { return op.mode == ResizeMode::nearest || op.mode == ResizeMode::nearest_exact; }
  static Value along(const Resize& op, Value x) {
    const std::int64_t first = x.rank() - static_cast<std::int64_t>(op.sizes.size());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(op.sizes.size()); ++i) {
      const Dim& out = op.sizes[static_cast<std::size_t>(i)];
      if (out == x.dim(first + i)) continue;
      if (is_nearest(op)) x = nearest(x, first + i, out, op.mode == ResizeMode::nearest_exact);
      else x = interpolated(x, first + i, out, op.mode, op.align_corners);
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
        all.push_back({{{{f32, {2, 3, 4}}}}, attrs_of(Resize{sizes, mode, false}), 4e-6});
    for (ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic})
      for (DType t : {f32, f64, bf16}) all.push_back({{{{t, {2, 5}}}}, attrs_of(Resize{{8}, mode, true}), 4e-6});
    all.push_back({{{{u8, {1, 2, 3, 3}}, 0, 200}}, attrs_of(Resize{{6, 5}, ResizeMode::nearest, false}), 0, false});
    return all;
  }
};
const Op<Resize> resize_op;

}  // namespace

/// The last axes of x (the spatial ones of [N, C, spatial...]) resampled to `sizes`. The modes agree with PyTorch's interpolate:
/// nearest, nearest_exact, linear (bilinear, trilinear) and cubic (bicubic, a = -0.75), without antialiasing. Nearest takes any dtype
/// and copies elements exactly. Sizes are static, except for whole multiples in nearest mode. A non-finite element spreads over the
/// whole line in linear and cubic mode.
Value resize(Value x, Dims sizes, ResizeMode mode /*= ResizeMode::nearest*/, bool align_corners /*= false*/) {
  return resize_op({sizes, mode, align_corners}, x);
}

/// Every element of the last two axes twice in both directions: [N, C, H, W] gives [N, C, 2H, 2W].
Value resize_nearest_2x(Value x) {
  if (x.rank() < 2) fail("rlx.resize_nearest_2x: {} has fewer than 2 axes", x.type().to_string());
  return resize(x, {x.dim(-2) * 2, x.dim(-1) * 2}, ResizeMode::nearest);
}

}  // namespace rlx
