#pragma once
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

// Typed attributes: the type says what vmap does with the value when a batch axis is put in front.

/// One axis of operand 0; negative counts from the end. vmap adds one.
struct Axis {
  std::int64_t value = 0;
  Axis(std::int64_t v = 0) : value(v) {}  // NOLINT(google-explicit-constructor): reads as a number
  operator std::int64_t() const { return value; }
};

/// Several axes of operand 0. vmap adds one to each.
struct Axes {
  std::vector<std::int64_t> values;
  Axes() = default;
  Axes(std::initializer_list<std::int64_t> v) : values(v) {}
  Axes(std::vector<std::int64_t> v) : values(std::move(v)) {}  // NOLINT(google-explicit-constructor)
  auto begin() const { return values.begin(); }
  auto end() const { return values.end(); }
  std::size_t size() const { return values.size(); }
  bool contains(std::int64_t axis) const;
  friend bool operator==(const Axes&, const Axes&) = default;
};

/// A list of axes that names every operand axis in order (a permutation, the target axes of a broadcast). vmap adds one to each
/// and puts 0 in front.
struct Perm {
  std::vector<std::int64_t> values;
  Perm() = default;
  Perm(std::initializer_list<std::int64_t> v) : values(v) {}
  Perm(std::vector<std::int64_t> v) : values(std::move(v)) {}  // NOLINT(google-explicit-constructor)
  auto begin() const { return values.begin(); }
  auto end() const { return values.end(); }
  std::size_t size() const { return values.size(); }
  std::int64_t operator[](std::size_t i) const { return values[i]; }
};

/// A whole shape. vmap puts the batch size in front.
struct Sizes {
  Dims values;
  Sizes() = default;
  Sizes(Dims v) : values(std::move(v)) {}  // NOLINT(google-explicit-constructor)
  auto begin() const { return values.begin(); }
  auto end() const { return values.end(); }
  std::size_t size() const { return values.size(); }
  const Dim& operator[](std::size_t i) const { return values[i]; }
};

enum class Neutral : std::uint8_t { zero, one, size };

/// One number for each axis of operand 0. vmap puts the neutral value in front (0, 1, or the batch size).
template <Neutral neutral>
struct PerDim {
  Dims values;
  PerDim() = default;
  PerDim(Dims v) : values(std::move(v)) {}  // NOLINT(google-explicit-constructor)
  auto begin() const { return values.begin(); }
  auto end() const { return values.end(); }
  std::size_t size() const { return values.size(); }
  const Dim& operator[](std::size_t i) const { return values[i]; }
};

/// What gather and scatter do with a window that is not wholly inside: move it inside, or read the fill value and write nothing.
enum class IndexMode : std::uint8_t { clip, fill };
constexpr auto enum_words(IndexMode) { return std::array<std::string_view, 2>{"clip", "fill"}; }

/// How scatter combines an update with the element that is there.
enum class ScatterKind : std::uint8_t { set, add, mul, min, max };
constexpr auto enum_words(ScatterKind) { return std::array<std::string_view, 5>{"set", "add", "mul", "min", "max"}; }

/// How scatter_reduce puts together the updates that meet in one element.
enum class ScatterReduceKind : std::uint8_t { sum, mean, prod, max, min };
constexpr auto enum_words(ScatterReduceKind) { return std::array<std::string_view, 5>{"sum", "mean", "prod", "max", "min"}; }

/// JAX's dimension numbers of gather and scatter. The last axis of the indices holds a start position; the others enumerate windows.
struct GatherNumbers {
  std::vector<std::int64_t> offset_dims;                       // axes of the result (scatter: of the updates) that run inside a window
  std::vector<std::int64_t> collapsed_slice_dims;              // operand axes with window size 1 that the result lacks (scatter: inserted)
  std::vector<std::int64_t> start_index_map;                   // the operand axis of each component of a start position
  std::vector<std::int64_t> operand_batching_dims = {};        // operand axes that go along with ...
  std::vector<std::int64_t> start_indices_batching_dims = {};  // ... these axes of the indices
};

/// The options of conv_general. A spec lists the axes (batch, feature, spatial...) of x and the result, (out, in, spatial...) of the
/// kernel.
struct ConvOptions {
  std::vector<std::int64_t> lhs_spec = {}, rhs_spec = {}, out_spec = {};  // empty: batch or out first, then feature or in, then spatial
  std::vector<std::int64_t> strides = {}, padding_lo = {}, padding_hi = {}, lhs_dilation = {},
                            rhs_dilation = {};  // per spatial axis; empty: 1, padding 0
  std::int64_t feature_group_count = 1, batch_group_count = 1;
};

/// What pad_mode puts outside: a fill value, the elements mirrored without (reflect) or with (symmetric) the border, the border
/// element, the elements of the other end, or a straight line from the border element to the fill value.
enum class PadMode : std::uint8_t { constant, reflect, edge, wrap, symmetric, linear_ramp };
constexpr auto enum_words(PadMode) {
  return std::array<std::string_view, 6>{"constant", "reflect", "edge", "wrap", "symmetric", "linear_ramp"};
}

/// How resize finds an element: nearest is floor(o * in / out), nearest_exact floor((o + 0.5) * in / out); lanczos weighs 6 or 10
/// neighbours by windowed sincs.
enum class ResizeMode : std::uint8_t { nearest, nearest_exact, linear, cubic, lanczos3, lanczos5 };
constexpr auto enum_words(ResizeMode) {
  return std::array<std::string_view, 6>{"nearest", "nearest_exact", "linear", "cubic", "lanczos3", "lanczos5"};
}

/// How grid_sample reads between elements: the nearest one (half to even), linear or cubic (a = -0.75) interpolation.
enum class GridMode : std::uint8_t { nearest, linear, cubic };
constexpr auto enum_words(GridMode) { return std::array<std::string_view, 3>{"nearest", "linear", "cubic"}; }

/// What grid_sample reads outside: 0, the border element, or the elements mirrored at the border.
enum class GridPadding : std::uint8_t { zeros, border, reflection };
constexpr auto enum_words(GridPadding) { return std::array<std::string_view, 3>{"zeros", "border", "reflection"}; }

/// What log_mel makes of logarithms: nothing more; Whisper's range of 8 below the largest of the clip; the same below that of each frame.
enum class LogMelForm : std::uint8_t { plain, whisper, frames };
constexpr auto enum_words(LogMelForm) { return std::array<std::string_view, 3>{"plain", "whisper", "frames"}; }

/// How embedding_bag puts the rows of a bag together.
enum class BagMode : std::uint8_t { sum, mean, max };
constexpr auto enum_words(BagMode) { return std::array<std::string_view, 3>{"sum", "mean", "max"}; }

/// The options of resize. All but the mode and align_corners are for linear, cubic and lanczos.
struct ResizeOptions {
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;       // the first and last elements of source and result lie on each other; else the borders do. See resize
  bool antialias = false;           // where the result is smaller, the kernel is stretched over all it stands for; implies exclude_outside
  bool exclude_outside = false;     // neighbours outside do not count (JAX, lanczos); else they are the border element (PyTorch)
  double cubic_a = -0.75;           // Keys' coefficient: -0.75 in PyTorch, -0.5 in JAX, and in PyTorch with antialias
  std::vector<double> scales = {};  // result elements for one source element, per size; empty: size / source size
};

/// The derivative that fake_quantize takes for the rounding, with r = x / scale: 1; 1 inside the range; 1 - tanh(r)^2;
/// max(0, 1 - |r| / largest code).
enum class StraightThrough : std::uint8_t { identity, clipped, tanh, hardtanh };
constexpr auto enum_words(StraightThrough) { return std::array<std::string_view, 4>{"identity", "clipped", "tanh", "hardtanh"}; }

/// Where the scale of fake_quantize comes from: this batch, a running mean kept in a state, or the state as it is.
enum class ScaleMode : std::uint8_t { per_batch, ema, fixed };
constexpr auto enum_words(ScaleMode) { return std::array<std::string_view, 3>{"per_batch", "ema", "fixed"}; }

struct FakeQuantizeOptions {
  int bits = 8;                           // 2, 4 or 8
  std::optional<std::int64_t> axis = {};  // one scale for each element of this axis; none: one for the tensor
  StraightThrough derivative = StraightThrough::identity;
  ScaleMode scale_mode = ScaleMode::per_batch;
  double decay = 0.99;  // of the running mean
};

/// Zero points of an integer layer, and the range its results saturate to (an activation fused into it narrows the range).
struct IntegerLayer {
  std::int64_t x_zero = 0, w_zero = 0, out_zero = 0;
  std::int64_t low = -128, high = 127;
};

/// Filters of sample_token, in the order they are applied. The initial values change nothing.
struct SampleOptions {
  double repetition_penalty = 1;  // logits of tokens seen: divided by it where positive, multiplied where negative
  double frequency_penalty = 0;   // subtracted once for each time the token was seen
  double presence_penalty = 0;    // subtracted once when the token was seen
  std::int64_t top_k = 0;         // keep the k largest logits; 0: all
  double typical_p = 1;           // keep the most typical tokens up to this probability
  double top_p = 1;               // keep the most likely tokens up to this probability
  double min_p = 0;               // keep tokens at least this likely, relative to the most likely one
  double temperature = 1;         // 0: the largest logit, the lowest id on ties
};

/// What attention adds to softmax(q k^T * scale) v. Values left null do not take part.
struct AttentionOptions {
  double scale = 0;         // 0: 1 / sqrt(head size)
  double softcap = 0;       // c > 0: scores become c * tanh(score / c), before everything below
  bool causal = false;      // query i sees keys <= its position; the last query sits at the last key, unless `positions` says otherwise
  std::int64_t window = 0;  // w > 0: keys in (p - w, p] of a query at position p; implies causal
  Value mask = {};          // bool, true = keep; broadcasts to (B, H, Sq, Sk)
  Value bias = {};          // added to the scores; broadcasts to (B, H, Sq, Sk)
  Value positions = {};     // integers, (Sq) or (B, Sq): the position of each query among the keys
};

/// Which elements rope turns together: i with i + dims / 2, or 2i with 2i + 1.
enum class RopeStyle : std::uint8_t { half, interleaved };
constexpr auto enum_words(RopeStyle) { return std::array<std::string_view, 2>{"half", "interleaved"}; }

enum class RopeScaling : std::uint8_t { none, linear, llama3, yarn, longrope };

/// Frequencies of rope: theta^(-2i / dims), then scaled for contexts longer than the trained one. Names and meanings as in model configs.
struct RopeOptions {
  double theta = 10000;
  std::int64_t dims = 0;  // the first elements of a head that turn; 0: all
  RopeStyle style = RopeStyle::half;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;                                 // linear, llama3, yarn: how much longer; longrope: longest context / original_length
  double original_length = 8192;                     // llama3, yarn, longrope: the trained context, in tokens
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  double attention_factor = 0;                       // yarn, longrope: multiplies sin and cos; 0: derived from factor
  std::vector<double> short_factors = {}, long_factors = {};  // longrope: a divisor for each frequency
};

/// How a loss puts its elements together.
enum class Reduction : std::uint8_t { none, mean, sum };

enum class Role : std::uint8_t { plain, axis, axes, perm, sizes, per_dim_zero, per_dim_one, per_dim_size };

/// Name, role and generic type of one attribute of an op.
struct Field {
  std::string_view name;
  Role role;
  std::size_t kind;                     // index in the Attr variant
  Attr initial;                         // the default member initialiser
  std::vector<std::string_view> words;  // for an enumeration: the allowed values, in order
};

/// As the text form of graphs has it.
std::string to_string(const Attr& attr);
std::size_t hash(const Attr& attr);
bool equal(const Attr& a, const Attr& b);

/// `axis` as a number in 0..rank-1; throws Error with the allowed range.
std::int64_t normalize_axis(std::string_view op, std::int64_t axis, const Type& type);

}  // namespace rlx
