// Pooling over windows of the last axes: composites of pad, window and reduce.
#include <algorithm>
#include <numeric>

#include "ir/op.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

// The geometry that every pool shares; lists have one number for each of the last axes of x.
struct Windows {
  Ints length, strides, padding, dilation;
  bool ceil_mode = false;
  std::size_t count() const { return length.size(); }
  std::int64_t span(std::size_t i) const { return (Dim(length[i] - 1) * dilation[i] + 1).value(); }
  std::int64_t elements() const { return product(Dims(length.begin(), length.end())).value(); }
};

void check(std::string_view op, const Windows& w, Value x) {
  if (w.count() == 0 || static_cast<int>(w.count()) > x.rank())
    fail("rlx.{}: {} window lengths for {}", op, w.count(), x.type().to_string());
  for (const auto& [name, list] : {std::pair{"strides", &w.strides}, std::pair{"padding", &w.padding}, std::pair{"dilation", &w.dilation}})
    if (list->size() != w.count())
      fail("rlx.{}: {} has {} numbers for {} window lengths (allowed: one for each)", op, name, list->size(), w.count());
  for (std::size_t i = 0; i < w.count(); ++i) {
    if (w.length[i] < 1 || w.strides[i] < 1 || w.dilation[i] < 1)
      fail("rlx.{}: length {}, stride {}, dilation {} (allowed: >= 1)", op, w.length[i], w.strides[i], w.dilation[i]);
    if (w.padding[i] < 0 || w.padding[i] > w.span(i) / 2)
      fail("rlx.{}: padding {} (allowed: 0..{}, half the window)", op, w.padding[i], w.span(i) / 2);
  }
}

// What ceil_mode adds at the end of axis i, so that a last window that starts in x or its padding in front is whole.
Dim extra(const Windows& w, std::size_t i, const Dim& size) {
  if (!w.ceil_mode) return 0;
  const std::int64_t stride = w.strides[i], in_front = (size + w.padding[i]).value(), padded = (Dim(in_front) + w.padding[i]).value();
  const std::int64_t room = padded - w.span(i);
  const std::int64_t over = room % stride < 0 ? room % stride + stride : room % stride;
  if (over == 0 || (Dim(room - over) + stride).value() >= in_front) return 0;
  return stride - over;
}

enum class Padding : std::uint8_t { all, given, ceil };

Value padded(const Windows& w, Value x, double fill, Padding which, const Dims& sizes) {
  const std::size_t lead = x.shape().size() - w.count();
  Dims lo(x.shape().size(), 0), hi = lo;
  for (std::size_t i = 0; i < w.count(); ++i) {
    if (which != Padding::ceil) lo[lead + i] = hi[lead + i] = w.padding[i];
    if (which != Padding::given) hi[lead + i] += extra(w, i, sizes[lead + i]);
  }
  return pad(x, lo, hi, {}, fill);
}

// Axes (lead..., n1, n2) become (lead..., o1, k1, o2, k2).
Value windows(const Windows& w, Value x) {
  const std::size_t lead = x.shape().size() - w.count();
  for (std::size_t i = w.count(); i-- > 0;) x = window(x, static_cast<std::int64_t>(lead + i), w.length[i], w.strides[i], w.dilation[i]);
  return x;
}

Axes window_axes(const Windows& w, int rank) {
  Axes axes;
  for (std::size_t i = 0; i < w.count(); ++i)
    axes.values.push_back(rank - static_cast<std::int64_t>(w.count()) + 2 * static_cast<std::int64_t>(i) + 1);
  return axes;
}

// The place of each element in its window, in row-major order.
Value places(const Windows& w, Value all) {
  const Axes inner = window_axes(w, all.rank() - static_cast<int>(w.count()));
  Value place;
  for (std::size_t i = 0; i < w.count(); ++i) {
    Value along = iota(all, all.shape(), i32, inner.values[i]);
    place = i == 0 ? along : place * static_cast<double>(w.length[i]) + along;
  }
  return place;
}

Sample sample(Dims shape, Attrs attrs, DType t = f32, double tolerance = 0) {
  return {{{{t, std::move(shape)}}}, std::move(attrs), tolerance};
}

struct MaxPool {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "max_pool";
  static constexpr std::string_view formula = "the largest element of each window over the last axes; the first of ties takes the gradient";
  Ints window, strides, padding, dilation;
  bool ceil_mode = false;
  static auto fields() { return Fields<&MaxPool::window, &MaxPool::strides, &MaxPool::padding, &MaxPool::dilation, &MaxPool::ceil_mode>{}; }
  static Windows geometry(const MaxPool& op) { return {op.window, op.strides, op.padding, op.dilation, op.ceil_mode}; }
  static Value body(const MaxPool& op, Value x) {
    const Windows w = geometry(op);
    check(name, w, x);
    if (is_complex(x.dtype())) fail("rlx.max_pool: {} has no order", x.type().to_string());
    Value all = windows(w, padded(w, x, lowest(x.dtype()), Padding::all, x.shape()));
    return reduce_max(all, window_axes(w, x.rank()));
  }
  static Values jvp(const MaxPool& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    if (!dx[0]) return {Value()};
    const Windows w = geometry(op);
    // No axis is moved or joined, so that channels stay where a convolution put them.
    Value values = windows(w, padded(w, x[0], lowest(x[0].dtype()), Padding::all, x[0].shape()));
    Value tangents = windows(w, padded(w, dx[0], 0, Padding::all, x[0].shape()));
    const Axes inner = window_axes(w, x[0].rank());
    Value is_largest = logical_or(eq(values, expand_dims(y[0], inner)), ne(values, values));  // NaN wins
    Value place = places(w, values), none = scalar(values, static_cast<double>(w.elements()), i32);
    Value first = reduce_min(select(is_largest, place, none), inner, true);
    return {sum(select(eq(place, first), tangents, scalar(tangents, 0, tangents.dtype())), inner)};
  }
  static std::vector<Sample> samples() {
    return {sample({2, 7, 6}, attrs_of(MaxPool{{2, 2}, {2, 2}, {0, 0}, {1, 1}, false})),
            sample({2, 7, 6}, attrs_of(MaxPool{{3, 2}, {2, 1}, {1, 1}, {1, 2}, false})),
            sample({2, 8}, attrs_of(MaxPool{{3}, {2}, {0}, {1}, true}), bf16),
            sample({5, 4, 6}, attrs_of(MaxPool{{2, 2, 2}, {1, 2, 3}, {0, 0, 1}, {1, 1, 1}, false}), i32)};
  }
};
const Op<MaxPool> max_pool_op;

struct SumPool {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "sum_pool";
  static constexpr std::string_view formula = "the sum of each window over the last axes; padding is 0";
  Ints window, strides, padding, dilation;
  bool ceil_mode = false;
  static auto fields() { return Fields<&SumPool::window, &SumPool::strides, &SumPool::padding, &SumPool::dilation, &SumPool::ceil_mode>{}; }
  static Value body(const SumPool& op, Value x) {
    const Windows w{op.window, op.strides, op.padding, op.dilation, op.ceil_mode};
    check(name, w, x);
    return sum(windows(w, padded(w, x, 0, Padding::all, x.shape())), window_axes(w, x.rank()));
  }
  static std::vector<Sample> samples() {
    return {sample({2, 7, 6}, attrs_of(SumPool{{3, 2}, {2, 1}, {1, 1}, {1, 1}, false}), f32, 1e-6),
            sample({2, 8}, attrs_of(SumPool{{3}, {2}, {1}, {2}, true}), i32)};
  }
};
const Op<SumPool> sum_pool_op;

struct ProdPool {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "prod_pool";
  static constexpr std::string_view formula = "the product of each window over the last axes; padding is 1";
  Ints window, strides, padding, dilation;
  bool ceil_mode = false;
  static auto fields() {
    return Fields<&ProdPool::window, &ProdPool::strides, &ProdPool::padding, &ProdPool::dilation, &ProdPool::ceil_mode>{};
  }
  static Value body(const ProdPool& op, Value x) {
    const Windows w{op.window, op.strides, op.padding, op.dilation, op.ceil_mode};
    check(name, w, x);
    return prod(windows(w, padded(w, x, 1, Padding::all, x.shape())), window_axes(w, x.rank()));
  }
  static std::vector<Sample> samples() {
    return {sample({2, 7, 6}, attrs_of(ProdPool{{3, 2}, {2, 1}, {1, 1}, {1, 1}, false}), f32, 1e-6),
            sample({2, 8}, attrs_of(ProdPool{{3}, {2}, {1}, {2}, true}), i32)};
  }
};
const Op<ProdPool> prod_pool_op;

struct AvgPool {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "avg_pool";
  static constexpr std::string_view formula = "the mean of each window over the last axes; padding counts as 0, or not at all";
  Ints window, strides, padding;
  bool ceil_mode = false, count_include_pad = true;
  static auto fields() {
    return Fields<&AvgPool::window, &AvgPool::strides, &AvgPool::padding, &AvgPool::ceil_mode, &AvgPool::count_include_pad>{};
  }
  static Value body(const AvgPool& op, Value x) {
    const Windows w{op.window, op.strides, op.padding, Ints(op.window.size(), 1), op.ceil_mode};
    check(name, w, x);
    if (!is_float(x.dtype()) && !is_complex(x.dtype())) fail("rlx.avg_pool: {} has no means (allowed: floats)", x.type().to_string());
    Value wide = cast(x, accumulation_type(x.dtype())), total = pooled(w, padded(w, wide, 0, Padding::all, x.shape()));
    const bool whole = op.count_include_pad
                           ? !op.ceil_mode
                           : !op.ceil_mode && std::all_of(op.padding.begin(), op.padding.end(), [](auto p) { return p == 0; });
    if (whole) return cast(total / static_cast<double>(w.elements()), x.dtype());
    // What ceil_mode adds never counts; given padding counts when asked to.
    Dims ones_shape(x.shape().size() - w.count(), 1);
    ones_shape.insert(ones_shape.end(), x.shape().end() - static_cast<std::ptrdiff_t>(w.count()), x.shape().end());
    Value ones = full(wide, ones_shape, 1, wide.dtype());
    Value counted = padded(w, padded(w, ones, op.count_include_pad ? 1 : 0, Padding::given, ones_shape), 0, Padding::ceil, ones_shape);
    return cast(total / pooled(w, counted), x.dtype());
  }
  static Value pooled(const Windows& w, Value x) { return sum(windows(w, x), window_axes(w, x.rank())); }
  static std::vector<Sample> samples() {
    return {sample({2, 7, 6}, attrs_of(AvgPool{{3, 2}, {2, 1}, {1, 1}, false, true}), f32, 1e-6),
            sample({2, 7, 6}, attrs_of(AvgPool{{3, 2}, {2, 1}, {1, 1}, false, false}), f32, 1e-6),
            sample({3, 8}, attrs_of(AvgPool{{3}, {2}, {1}, true, true}), bf16, 1e-6),
            sample({3, 8}, attrs_of(AvgPool{{3}, {2}, {1}, true, false}), f64, 1e-12)};
  }
};
const Op<AvgPool> avg_pool_op;

struct LpPool {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "lp_pool";
  static constexpr std::string_view formula = "(sum of |x|^p)^(1/p) over each window of the last axes";
  double p = 2;
  Ints window, strides;
  bool ceil_mode = false;
  static auto fields() { return Fields<&LpPool::p, &LpPool::window, &LpPool::strides, &LpPool::ceil_mode>{}; }
  static Value body(const LpPool& op, Value x) {
    const Windows w{op.window, op.strides, Ints(op.window.size(), 0), Ints(op.window.size(), 1), op.ceil_mode};
    check(name, w, x);
    if (!is_float(x.dtype())) fail("rlx.lp_pool: {} is not allowed (allowed: floats)", x.type().to_string());
    if (!(op.p > 0)) fail("rlx.lp_pool: p = {} (allowed: > 0)", op.p);
    Value wide = cast(x, accumulation_type(x.dtype())), all = windows(w, padded(w, wide, 0, Padding::all, x.shape()));
    return cast(norm(all, window_axes(w, x.rank()), op.p), x.dtype());
  }
  static std::vector<Sample> samples() {
    return {sample({2, 7, 6}, attrs_of(LpPool{3, {2, 2}, {2, 2}, false}), f32, 4e-6),
            sample({2, 7}, attrs_of(LpPool{2, {3}, {2}, true}), f64, 1e-12), sample({2, 7}, attrs_of(LpPool{1.5, {3}, {1}, false}), bf16)};
  }
};
const Op<LpPool> lp_pool_op;

Ints filled(Ints list, const Ints& initial) {
  if (list.empty()) return initial;
  return list.size() == 1 ? Ints(initial.size(), list[0]) : list;
}

}  // namespace

/// The largest element of each window over the last window.size() axes of x, 1-3 axes or more: a size n becomes (n + 2 padding - dilation
/// (window - 1) - 1) / stride + 1, rounded down. Strides are the window by default; padding (at most half a window) never wins; lists may
/// give one number for all axes. ceil_mode rounds up: it keeps a last window that only starts inside. The gradient goes to the first of
/// ties. Throws Error for lists that do not fit.
Value max_pool(Operand x, std::vector<std::int64_t> window, std::vector<std::int64_t> strides /*= {}*/,
               std::vector<std::int64_t> padding /*= {}*/, std::vector<std::int64_t> dilation /*= {}*/, bool ceil_mode /*= false*/) {
  return max_pool_op(
      {window, filled(strides, window), filled(padding, Ints(window.size(), 0)), filled(dilation, Ints(window.size(), 1)), ceil_mode}, x);
}

/// The sum of each window; arguments as in max_pool.
Value sum_pool(Operand x, std::vector<std::int64_t> window, std::vector<std::int64_t> strides /*= {}*/,
               std::vector<std::int64_t> padding /*= {}*/, std::vector<std::int64_t> dilation /*= {}*/, bool ceil_mode /*= false*/) {
  return sum_pool_op(
      {window, filled(strides, window), filled(padding, Ints(window.size(), 0)), filled(dilation, Ints(window.size(), 1)), ceil_mode}, x);
}

/// The product of each window, padding being 1; arguments as in max_pool. Its derivative needs no division, so elements may be 0.
Value prod_pool(Operand x, std::vector<std::int64_t> window, std::vector<std::int64_t> strides /*= {}*/,
                std::vector<std::int64_t> padding /*= {}*/, std::vector<std::int64_t> dilation /*= {}*/, bool ceil_mode /*= false*/) {
  return prod_pool_op(
      {window, filled(strides, window), filled(padding, Ints(window.size(), 0)), filled(dilation, Ints(window.size(), 1)), ceil_mode}, x);
}

/// The mean of each window; arguments as in max_pool. count_include_pad: padding counts as zeros, as in PyTorch.
Value avg_pool(Operand x, std::vector<std::int64_t> window, std::vector<std::int64_t> strides /*= {}*/,
               std::vector<std::int64_t> padding /*= {}*/, bool ceil_mode /*= false*/, bool count_include_pad /*= true*/) {
  return avg_pool_op({window, filled(strides, window), filled(padding, Ints(window.size(), 0)), ceil_mode, count_include_pad}, x);
}

/// The p-norm of each window, (sum of |x|^p)^(1/p), p > 0 or infinity; windows as in max_pool, without padding. Elements that ceil_mode
/// adds are 0. The derivative is 0 where a window holds only zeros. Throws Error for x that is no float.
Value lp_pool(Operand x, double p, std::vector<std::int64_t> window, std::vector<std::int64_t> strides /*= {}*/,
              bool ceil_mode /*= false*/) {
  return lp_pool_op({p, window, filled(strides, window), ceil_mode}, x);
}

}  // namespace rlx
