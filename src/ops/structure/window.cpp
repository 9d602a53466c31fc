// Windows along an axis: `window` views all of them, `fold` is its transpose, the sum of the elements that share a place.
#include <complex>

#include "ops/broadcasting.h"
#include "ops/contraction/dilated_size.h"
#include "ops/structure/structure.h"

namespace rlx {
namespace {

using At = std::vector<Index>;

Sample window_sample(Dims shape, Attrs attrs, DType dtype = f32) { return {{{{dtype, std::move(shape)}}}, std::move(attrs)}; }

struct Window {
  static constexpr OpKind kind = OpKind::structure;
  static constexpr std::string_view name = "window";
  static constexpr std::string_view formula =
      "axis n becomes (o, k): element o * stride + k * dilation; a view of all windows of length `length`";
  Axis axis;
  std::int64_t length = 1, stride = 1, dilation = 1;
  static auto fields() { return Fields<&Window::axis, &Window::length, &Window::stride, &Window::dilation>{}; }
  static Type infer(const Window& op, const Type& x) {
    if (op.length < 1 || op.stride < 1 || op.dilation < 1)
      fail("rlx.window: length {}, stride {}, dilation {} (allowed: >= 1)", op.length, op.stride, op.dilation);
    const Dim room = x.dim(op.axis) - (Dim(op.length - 1) * op.dilation + 1);
    if (!room.known_non_negative())
      fail("rlx.window: {} windows of {} do not fit axis {} of {}", op.length, op.dilation, op.axis.value, x.to_string());
    Type result = x;
    const auto at = static_cast<std::size_t>(op.axis.value);
    result.shape[at] = strides_in(fmt::format("rlx.window: axis {} of {}", op.axis.value, x.to_string()), room, op.stride) + 1;
    result.shape.insert(result.shape.begin() + op.axis + 1, Dim(op.length));
    return result;
  }
  static std::vector<Source> sources(const Window& op, std::span<const Type>, const Type&, const At& at) {
    At from = at;
    const auto i = static_cast<std::size_t>(op.axis.value);
    from[i] = at[i] * op.stride + at[i + 1] * op.dilation;
    from.erase(from.begin() + op.axis + 1);
    return one_source(std::move(from));
  }
  static Values transpose(const Window& op, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    return {fold(dy[0], op.axis, x[0].dim(op.axis), op.stride, op.dilation)};
  }
  static std::vector<Sample> samples() {
    return {window_sample({7, 2}, attrs_of(Window{0, 3, 2, 1})), window_sample({2, 9}, attrs_of(Window{1, 3, 1, 2})),
            window_sample({2, 8, 3}, attrs_of(Window{1, 2, 3, 2}), i32)};
  }
};
const Op<Window> window_op;

struct Fold {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "fold";
  static constexpr std::string_view formula =
      "axes (o, k) become n: the sum of the elements with o * stride + k * dilation = n; the transpose of window";
  Axis axis;
  Dims extent = {1};
  std::int64_t stride = 1, dilation = 1;
  static auto fields() { return Fields<&Fold::axis, &Fold::extent, &Fold::stride, &Fold::dilation>{}; }
  static Type infer(const Fold& op, const Type& x) {
    if (op.axis + 1 >= x.rank()) fail("rlx.fold: axis {} of {} has no window axis behind it", op.axis.value, x.to_string());
    if (op.extent.size() != 1 || op.stride < 1 || op.dilation < 1)
      fail("rlx.fold: stride {}, dilation {} (allowed: >= 1)", op.stride, op.dilation);
    const Dim needed = (x.dim(op.axis) - 1) * op.stride + (x.dim(op.axis + 1) - 1) * op.dilation + 1;
    if (!(op.extent[0] - needed).known_non_negative())
      fail("rlx.fold: extent {} is too small for {} (allowed: >= {})", op.extent[0].to_string(), x.to_string(), needed.to_string());
    Type result = x;
    result.shape[static_cast<std::size_t>(op.axis)] = op.extent[0];
    result.shape.erase(result.shape.begin() + op.axis + 1);
    return result;
  }
  static Loop loop(const Fold& op, std::span<const Type> x, const Type&, const At& at, const FreshVariable& fresh) {
    const auto i = static_cast<std::size_t>(op.axis.value);
    const Dim &windows = x[0].dim(op.axis), &length = x[0].dim(op.axis + 1);
    Source source{{}, 0, at, 0};
    Index o, k, variable;
    if (op.dilation == 1 && length.is_static()) {
      // Only every stride-th place of a window can be n: where windows do not overlap there is one, and no loop.
      variable = fresh((length.value() - 1) / op.stride + 1);
      o = Index::quotient(at[i], op.stride) - variable;
      k = Index::remainder(at[i], op.stride) + variable * Dim(op.stride);
      source.guards = {at_least_zero(o), at_least_zero(Index(length - 1) - k), at_least_zero(Index(windows - 1) - o)};
    } else {
      variable = k = fresh(length);
      const Index offset = at[i] - k * Dim(op.dilation);
      source.guards = {at_least_zero(offset)};
      if (op.stride != 1) source.guards.push_back({Guard::Kind::zero, Index::remainder(offset, op.stride)});
      source.guards.push_back(at_least_zero(Index((windows - 1) * op.stride) - offset));
      o = Index::quotient(offset, op.stride);
    }
    source.index[i] = o;
    source.index.insert(source.index.begin() + op.axis + 1, k);
    return {ReduceKind::sum, accumulation_type(x[0].dtype), {variable}, {{source, {{}, Source::fill_value, {}, 0}}}};
  }
  static void evaluate(const Fold& op, std::span<const Array> x, std::span<Array> y) {
    const auto axis = static_cast<std::size_t>(op.axis.value);
    const auto& in = x[0].shape();
    std::int64_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < axis; ++i) outer *= in[i];
    for (std::size_t i = axis + 2; i < in.size(); ++i) inner *= in[i];
    const std::int64_t folds = in[axis], length = in[axis + 1], extent = y[0].shape()[axis];
    std::vector<std::complex<double>> total(static_cast<std::size_t>(y[0].size()));
    for (std::int64_t a = 0; a < outer; ++a)
      for (std::int64_t o = 0; o < folds; ++o)
        for (std::int64_t k = 0; k < length; ++k)
          for (std::int64_t c = 0; c < inner; ++c)
            total[static_cast<std::size_t>((a * extent + o * op.stride + k * op.dilation) * inner + c)] +=
                x[0].get_complex(((a * folds + o) * length + k) * inner + c);
    for (std::int64_t i = 0; i < y[0].size(); ++i) y[0].set_complex(i, total[static_cast<std::size_t>(i)]);
  }
  static Values transpose(const Fold& op, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    // Elements of n that no window covers fall away: crop to what the windows read.
    const Dim covered = (x[0].dim(op.axis) - 1) * op.stride + (x[0].dim(op.axis + 1) - 1) * op.dilation + 1;
    return {window(slice_axis(dy[0], op.axis, 0, covered), op.axis, x[0].dim(op.axis + 1).value(), op.stride, op.dilation)};
  }
  static std::vector<Sample> samples() {
    return {window_sample({3, 3, 2}, attrs_of(Fold{0, {7}, 2, 1})), window_sample({2, 5, 3}, attrs_of(Fold{1, {9}, 1, 2})),
            window_sample({2, 2, 3}, attrs_of(Fold{1, {8}, 2, 2}))};
  }
};
const Op<Fold> fold_op;

}  // namespace

/// Replaces axis n by (o, k), with element o * stride + k * dilation of x: a view of every window of `length` elements; o = (n - dilation
/// (length - 1) - 1) / stride + 1. Throws Error when no window fits, and for a stride that does not divide a symbolic axis.
Value window(Operand x, std::int64_t axis, std::int64_t length, std::int64_t stride /*= 1*/, std::int64_t dilation /*= 1*/) {
  return window_op({axis, length, stride, dilation}, x);
}

/// The transpose of window: axes (o, k), `axis` and the one behind it, become one of size `extent`; overlapping elements are summed.
/// Throws Error when the extent is smaller than what the windows cover.
Value fold(Operand x, std::int64_t axis, Dim extent, std::int64_t stride /*= 1*/, std::int64_t dilation /*= 1*/) {
  return fold_op({axis, {extent}, stride, dilation}, x);
}

}  // namespace rlx
