// Rotary position embeddings: pairs of elements turned by position * frequency. Angles and their sines are computed in f64, because
// position * frequency has lost its fraction in f32 long before the positions of today's contexts.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ir/sources.h"
#include "ops/wide.h"

namespace rlx {
namespace {

constexpr double pi = std::numbers::pi;

// x (..., n) as (..., n, 1).
Value as_column(Value x) {
  Dims shape = x.shape();
  shape.push_back(1);
  return reshape(x, shape);
}

// (a, b) turned by the angle: (a cos - b sin, b cos + a sin), joined along the last axis.
Value turn(Value a, Value b, Value c, Value s) { return concat({a * c - b * s, b * c + a * s}, -1); }

// x (..., S, D) with the pairs of its first elements turned by `angles` (..., S, pairs) in f64; elements behind stay.
Value turn_pairs(Value x, Value angles, RopeStyle style, double magnitude) {
  Value wide = widen(x), c = cast(cos(angles) * magnitude, wide.dtype()), s = cast(sin(angles) * magnitude, wide.dtype());
  const Dim &pairs = angles.dim(-1), &size = x.dim(-1);
  const Dim dims = pairs * 2;
  Value front = slice_axis(wide, -1, 0, dims), result;
  if (style == RopeStyle::half) {
    result = turn(slice_axis(front, -1, 0, pairs), slice_axis(front, -1, pairs, dims), c, s);
  } else {
    Dims shape = front.shape();
    shape.back() = pairs;
    shape.push_back(2);
    Value both = reshape(front, shape);
    result = reshape(turn(slice_axis(both, -1, 0, 1), slice_axis(both, -1, 1, 2), as_column(c), as_column(s)), front.shape());
  }
  if (!(dims == size)) result = concat({result, slice_axis(wide, -1, dims, size)}, -1);
  return cast(result, x.dtype());
}

struct Rope {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "rope";
  static constexpr std::string_view formula =
      "pairs (a, b) of x become magnitude * (a cos t - b sin t, b cos t + a sin t), t = position * frequency; x (..., S, D), positions "
      "(..., S, 1), "
      "frequencies (..., pairs) of f64";
  RopeStyle style = RopeStyle::half;
  double magnitude = 1;
  static auto fields() { return Fields<&Rope::style, &Rope::magnitude>{}; }
  static Value body(const Rope& op, Value x, Value positions, Value frequencies) {
    check_float(name, x);
    return turn_pairs(x, cast(positions, f64) * cast(frequencies, f64), op.style, op.magnitude);
  }
  static std::vector<Sample> samples() {
    const Sample::Operand positions{{i32, {1, 1, 5, 1}}, 0, 9};
    auto pairs = [](std::int64_t n) { return Sample::Operand{{f64, {1, 1, 1, n}}, 0, 1}; };
    std::vector<Sample> all;
    for (RopeStyle style : {RopeStyle::half, RopeStyle::interleaved})
      for (DType t : {f32, bf16})
        for (std::int64_t n : {4, 3})
          all.push_back({{{{t, {2, 3, 5, 8}}}, positions, pairs(n)}, attrs_of(Rope{style, n == 4 ? 1 : 1.2}), 4e-6});
    return all;
  }
};
const Op<Rope> rope_op;

struct AxialRope2d {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "axial_rope_2d";
  static constexpr std::string_view formula =
      "rope on a grid: token s lies at column s mod width, row s / width (mod height); adjacent pairs, the first half turned by the "
      "column, the second by the row";
  std::int64_t width = 1, height = 1;
  double theta = 10000;
  static auto fields() { return Fields<&AxialRope2d::width, &AxialRope2d::height, &AxialRope2d::theta>{}; }
  // Written out, because the body of a graph that is only read or checked would compute its table.
  static Type infer(const AxialRope2d& op, const Type& x) {
    if (!is_float(x.dtype)) fail("rlx.axial_rope_2d: {} is not allowed (allowed: floats)", x.to_string());
    if (x.rank() < 2) fail("rlx.axial_rope_2d: {} has fewer than 2 axes", x.to_string());
    const Dim &tokens = x.dim(x.rank() - 2), &size = x.dim(x.rank() - 1);
    if (size.value() % 4 != 0) fail("rlx.axial_rope_2d: head size {} of {} (allowed: a multiple of 4)", size.value(), x.to_string());
    if (!(op.theta > 0)) fail("rlx.axial_rope_2d: theta {} (allowed: > 0)", op.theta);
    if (op.width < 1 || op.height < 1) fail("rlx.axial_rope_2d: grid {} x {} (allowed: >= 1)", op.width, op.height);
    if (!Dim::exact_div(tokens, Dim(op.width) * op.height))
      fail("rlx.axial_rope_2d: {} tokens of {} are no multiple of the grid {} x {}", tokens.to_string(), x.to_string(), op.width,
           op.height);
    return x;
  }
  static Value body(const AxialRope2d& op, Value x) {
    const std::int64_t size = x.dim(-1).value();
    Array frequency(f64, {size / 4});
    for (std::int64_t i = 0; i < size / 4; ++i)
      frequency.set_double(i, std::pow(op.theta, -4.0 * static_cast<double>(i) / static_cast<double>(size)));
    Value table = make_constant(x.graph(), frequency), token = iota(x, {x.dim(-2), 1}, i32, 0);
    auto whole = [&](std::int64_t v) { return scalar(x, static_cast<double>(v), i32); };
    Value column = rem(token, whole(op.width)), row = rem(div(token, whole(op.width)), whole(op.height));
    Value angles = concat({cast(column, f64) * table, cast(row, f64) * table}, -1);
    return turn_pairs(x, angles, RopeStyle::interleaved, 1);
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {2, 12, 8}}}}, attrs_of(AxialRope2d{4, 3, 10000}), 4e-6},
            {{{{f32, {2, 3, 12, 4}}}}, attrs_of(AxialRope2d{3, 2, 100}), 4e-6}};
  }
};
const Op<AxialRope2d> axial_rope_2d_op;

std::vector<double> unscaled_frequencies(const RopeOptions& o, std::int64_t dims) {
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < dims / 2; ++i)
    frequencies.push_back(std::pow(o.theta, -2.0 * static_cast<double>(i) / static_cast<double>(dims)));
  return frequencies;
}

/// Llama 3: long waves are stretched by the factor, short ones stay, those between are blended.
double llama3_frequency(const RopeOptions& o, double frequency) {
  const double wavelength = 2 * pi / frequency;
  if (wavelength > o.original_length / o.low_freq_factor) return frequency / o.factor;
  if (wavelength < o.original_length / o.high_freq_factor) return frequency;
  const double smooth = (o.original_length / wavelength - o.low_freq_factor) / (o.high_freq_factor - o.low_freq_factor);
  return (1 - smooth) * frequency / o.factor + smooth * frequency;
}

/// YaRN (Peng et al. 2023): a ramp over the pairs, between those that turn beta_fast and beta_slow times in the trained context.
std::vector<double> yarn_frequencies(const RopeOptions& o, std::vector<double> frequencies, std::int64_t dims) {
  auto pair_with_turns = [&](double turns) {
    return static_cast<double>(dims) * std::log(o.original_length / (turns * 2 * pi)) / (2 * std::log(o.theta));
  };
  const double low = std::max(std::floor(pair_with_turns(o.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_with_turns(o.beta_slow)), static_cast<double>(dims - 1));
  if (low == high) high += 0.001;  // no ramp of length 0
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / o.factor * stretched + frequencies[i] * (1 - stretched);
  }
  return frequencies;
}

std::vector<double> divided(std::vector<double> frequencies, const std::vector<double>& factors, std::string_view what) {
  if (factors.size() != frequencies.size()) fail("rlx.rope: {} {} factors, {} pairs turn", factors.size(), what, frequencies.size());
  for (std::size_t i = 0; i < factors.size(); ++i) frequencies[i] /= factors[i];
  return frequencies;
}

double magnitude_of(const RopeOptions& o) {
  if (o.scaling != RopeScaling::yarn && o.scaling != RopeScaling::longrope) return 1;
  if (o.attention_factor > 0) return o.attention_factor;
  if (o.factor <= 1) return 1;
  return o.scaling == RopeScaling::yarn ? 0.1 * std::log(o.factor) + 1 : std::sqrt(1 + std::log(o.factor) / std::log(o.original_length));
}

// A constant (1, ..., n) with as many axes as x.
Value table_of(Value x, const std::vector<double>& values) {
  std::vector<std::int64_t> shape(x.shape().size(), 1);
  shape.back() = static_cast<std::int64_t>(values.size());
  Array array(f64, shape);
  std::copy(values.begin(), values.end(), array.mutable_values<double>().begin());
  return make_constant(x.graph(), std::move(array));
}

// The frequencies under the options' scaling. longrope has two sets, and the largest position decides which one holds.
Value frequencies_of(Value x, Value positions, const RopeOptions& o, std::int64_t dims) {
  std::vector<double> plain = unscaled_frequencies(o, dims);
  switch (o.scaling) {
    case RopeScaling::none: return table_of(x, plain);
    case RopeScaling::linear:
      for (double& f : plain) f /= o.factor;
      return table_of(x, plain);
    case RopeScaling::llama3:
      for (double& f : plain) f = llama3_frequency(o, f);
      return table_of(x, plain);
    case RopeScaling::yarn: return table_of(x, yarn_frequencies(o, plain, dims));
    case RopeScaling::longrope: {
      Value near = table_of(x, divided(plain, o.short_factors, "short")), far = table_of(x, divided(plain, o.long_factors, "long"));
      Axes all;
      for (std::int64_t axis = 0; axis < positions.rank(); ++axis) all.values.push_back(axis);
      Value last = cast(reduce_max(positions, all), f64);
      return select(ge(last, scalar(x, o.original_length, f64)), far, near);
    }
  }
  fail_internal("rlx.rope: unknown scaling");
}

// (S) or (B, S) positions as (B or 1, 1, ..., S, 1), with as many axes as x.
Value aligned_positions(Value positions, Value x) {
  const bool batched = positions.rank() == 2 && x.rank() >= 3 && (positions.dim(0) == x.dim(0) || positions.dim(0) == Dim(1));
  if (!is_integer(positions.dtype()) || !(positions.rank() == 1 || batched) || !(positions.dim(-1) == x.dim(-2)))
    fail("rlx.rope: positions {} do not fit x {} (allowed: integers, [S] or [B, S])", positions.type().to_string(), x.type().to_string());
  Dims shape(x.shape().size(), 1);
  shape[shape.size() - 2] = x.dim(-2);
  if (batched) shape.front() = positions.dim(0);
  return reshape(positions, shape);
}

}  // namespace

/// Rotary position embedding of x (..., S, D): the first `dims` elements of each row are turned pairwise by position * frequency, the
/// others stay. positions: integers, [S], or [B, S] for x (B, ..., S, D). Exact at any position: the angles are f64.
Value rope(Operand x, Operand positions, const RopeOptions& options /*= {}*/) {
  if (x.rank() < 2) fail("rlx.rope: x is {} (allowed: [..., S, D])", x.type().to_string());
  const std::int64_t size = x.dim(-1).value(), dims = options.dims ? options.dims : size;
  if (dims < 2 || dims > size || dims % 2 != 0) fail("rlx.rope: dims {} of head size {} (allowed: even, 2..{})", dims, size, size);
  if (!(options.theta > 0) || !(options.factor > 0)) fail("rlx.rope: theta {}, factor {} (allowed: > 0)", options.theta, options.factor);
  Value aligned = aligned_positions(positions, x);
  return rope_op({options.style, magnitude_of(options)}, x, aligned, frequencies_of(x, aligned, options, dims));
}

/// Rotary embedding of x (..., S, D) on a grid of width * height tokens, row by row; S may be a multiple of that, the grid then repeats.
/// Adjacent pairs; the first D / 2 elements turn by the column, the others by the row (SAM 2). D must be a multiple of 4.
Value axial_rope_2d(Operand x, std::int64_t width, std::int64_t height, double theta /*= 10000*/) {
  return axial_rope_2d_op({width, height, theta}, x);
}

}  // namespace rlx
