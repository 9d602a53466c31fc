#include "passes/quantize.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ir/sources.h"
#include "ops/contraction/convolution.h"
#include "ops/contraction/dot_axes.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using Ints = WeightedProduct::Ints;

constexpr double smallest = 1e-30;  // a row of equal numbers has a scale too, whose inverse f32 holds

/// The axes of x that are not among `axes`.
Ints without(Value x, const Ints& axes) {
  Ints others;
  for (std::int64_t axis = 0; axis < x.rank(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) others.push_back(axis);
  return others;
}

/// The shape without `axes`.
Dims beside(Value x, const Ints& axes) {
  Dims shape;
  for (std::int64_t axis : without(x, axes)) shape.push_back(x.dim(axis));
  return shape;
}

/// Values with an axis for each of `axes`, in that order, lying along them: as x's shape says, but 1 elsewhere.
Value along(Value values, Value x, const Ints& axes) {
  Ints order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return axes[static_cast<std::size_t>(a)] < axes[static_cast<std::size_t>(b)]; });
  Dims shape(static_cast<std::size_t>(x.rank()), 1);
  for (std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = x.dim(axis);
  return reshape(transpose(values, order), shape);
}

/// Values that are left of x along `axes`, as they lie in x, with the axes in the order of the list.
Value in_order(Value values, const Ints& axes) {
  Ints order;
  for (std::int64_t axis : axes) order.push_back(std::count_if(axes.begin(), axes.end(), [&](std::int64_t other) { return other < axis; }));
  return transpose(values, order);
}

/// Numbers q of i8, scales and offsets with x = q * scale + offset, the same for all elements along `axes`; scales and offsets are without
/// those axes.
struct Quantized {
  Value numbers, scales, offsets;
};

/// Weights: the numbers are symmetric, without offsets, as sums over offsets would need the other operand's.
Quantized symmetric(Value x, const Ints& axes) {
  constexpr double largest = 127;
  const Value size = max(reduce_max(abs(x), axes, true), like(x, smallest));
  return {cast(round(x * (largest / size)), i8), reshape(size / largest, beside(x, axes)), Value()};
}

/// Activations, of which these are the halves, from `least` to `largest`, which keep their axes: each row uses all 256 numbers, as those
/// behind a GELU are hardly ever negative. Halves, as the distance of two elements may be beyond the largest f32.
Quantized spread(Value halves, Value least, Value largest, const Ints& axes) {
  constexpr double lowest = -128, steps = 255;
  const Value reach = max(largest - least, like(halves, smallest));
  const Dims shape = beside(halves, axes);
  return {cast(round((halves - least) * (steps / reach) + lowest), i8), reshape(reach / (steps / 2), shape),
          reshape((least - reach * (lowest / steps)) * 2, shape)};
}

/// The sizes of weights, 0 for one that is no number.
Value finite_sizes(const WeightedProduct& product) {
  const Value sizes = abs(product.right);
  return select(le(sizes, like(sizes, std::numeric_limits<float>::max())), sizes, like(sizes, 0));
}

/// Values as shares of the largest.
Value shares(Value values) {
  Ints all_axes(static_cast<std::size_t>(values.rank()));
  std::iota(all_axes.begin(), all_axes.end(), 0);
  return max(values / max(reduce_max(values, all_axes), like(values, smallest)), like(values, smallest));
}

/// The numbers that an activation is multiplied and its weights are divided by, of the shape of the places. Elements that stand far out of
/// an activation's row meet small weights in trained models: these factors bring both nearer to their neighbours, so that fewer of the 256
/// numbers are spent on them. The fourth root of the weights' sizes, as with the square root the steps of the weights grow by more than is
/// won. They are at most 1: no activation overflows.
Value balance_of(Value largest) { return sqrt(sqrt(shares(largest))); }

/// x with the zeros of a conv around it.
Value with_zeros(const ConvOptions& conv, Value x) {
  Dims lo(static_cast<std::size_t>(x.rank()), 0), hi = lo;
  for (std::size_t i = 0; i < conv.strides.size(); ++i) {
    const auto axis = static_cast<std::size_t>(conv.lhs_spec[i + 2]);
    lo[axis] = conv.padding_lo[i];
    hi[axis] = conv.padding_hi[i];
  }
  return pad(x, lo, hi);
}

Value multiplied(const WeightedProduct& product, Value left, Value right) {
  return cast(product.multiply(cast(left, i32), cast(right, i32)), f32);
}

/// The rules of places that both operands have: pairs of axes of one size.
void add_paired_places(WeightedProduct& product) {
  product.by_place = [x = product.left, places = product.left_places](Value values) { return along(values, x, places); };
  product.by_weight = [w = product.right, places = product.right_places](Value values) { return along(values, w, places); };
  product.largest_at_places = [places = product.right_places](Value values) {
    return in_order(reduce_max(values, without(values, places)), places);
  };
}

/// Those of a conv in groups: a channel of x meets the weights of its group only, (G, O / G, C / G) of which are (O, C / G).
void add_grouped_places(WeightedProduct& product, const ConvOptions& conv) {
  const Value w = product.right;
  const Ints axes{conv.rhs_spec[0], conv.rhs_spec[1]};
  const Dim groups = conv.feature_group_count, columns = *Dim::exact_div(w.dim(axes[0]), conv.feature_group_count);
  const Dim& rows = w.dim(axes[1]);
  product.by_place = [x = product.left, places = product.left_places](Value values) { return along(values, x, places); };
  product.by_weight = [=](Value values) {
    const Value repeated = broadcast_to(reshape(values, {groups, 1, rows}), {groups, columns, rows});
    return along(reshape(repeated, {groups * columns, rows}), w, axes);
  };
  product.largest_at_places = [=](Value values) {
    const Value of_pairs = in_order(without(values, axes).empty() ? values : reduce_max(values, without(values, axes)), axes);
    return reshape(reduce_max(reshape(of_pairs, {groups, columns, rows}), {1}), {groups * rows});
  };
}

WeightedProduct weighted_dot(const Node& product, std::span<const Value> operands) {
  const DotAxes dot(product);
  WeightedProduct weighted{operands[0], operands[1], dot.lhs_contract, dot.rhs_contract, dot.lhs_contract, dot.rhs_contract};
  weighted.padded = weighted.by_column = [](Value values) { return values; };
  weighted.multiply = [dot](Value x, Value w) { return dot.dot(x, w); };
  add_paired_places(weighted);
  weighted.by_row = [columns = beside(operands[1], dot.rhs_contract).size()](Value values) {
    Dims shape = values.shape();
    shape.resize(shape.size() + columns, 1);
    return reshape(values, shape);
  };
  return weighted;
}

WeightedProduct weighted_conv(const Node& product, std::span<const Value> operands) {
  ConvOptions conv = conv_options(product.attrs);
  const auto rest = [](const Ints& spec) { return Ints(spec.begin() + 1, spec.end()); };
  WeightedProduct weighted{operands[0], operands[1], {conv.lhs_spec[1]}, {conv.rhs_spec[1]}, rest(conv.lhs_spec), rest(conv.rhs_spec)};
  const auto lying_along = [rank = static_cast<std::size_t>(operands[0].rank())](std::int64_t axis) {
    return [rank, axis](Value values) {
      Dims shape(rank, 1);
      shape[static_cast<std::size_t>(axis)] = values.dim(0);
      return reshape(values, shape);
    };
  };
  if (conv.feature_group_count == 1) add_paired_places(weighted);
  else add_grouped_places(weighted, conv);
  weighted.by_row = lying_along(conv.out_spec[0]);
  weighted.by_column = lying_along(conv.out_spec[1]);
  weighted.meets_zeros = true;
  weighted.padded = [conv](Value x) { return with_zeros(conv, x); };
  conv.padding_lo = conv.padding_hi = Ints(conv.strides.size(), 0);
  weighted.multiply = [conv](Value x, Value w) { return conv_general(x, w, conv); };
  return weighted;
}

/// The axes that an image is summed over beside its channels.
Ints apart_from_places(const WeightedProduct& product) {
  Ints apart;
  for (std::int64_t axis : product.left_summed)
    if (std::find(product.left_places.begin(), product.left_places.end(), axis) == product.left_places.end()) apart.push_back(axis);
  return apart;
}

}  // namespace

WeightedProduct weighted_product(const Node& product, std::span<const Value> operands) {
  return product.op->name == "conv" ? weighted_conv(product, operands) : weighted_dot(product, operands);
}

HalfWeight in_f16(const WeightedProduct& product) {
  constexpr double largest = 65504;
  const Value most = reduce_max(finite_sizes(product), product.right_summed, true);
  const Value scales = max(most / largest, like(most, 1));
  return {cast(product.right / scales, f16), reshape(scales, beside(product.right, product.right_summed))};
}

Value largest_weights(const WeightedProduct& product) { return product.largest_at_places(finite_sizes(product)); }

Value in_int8(const WeightedProduct& product, Value largest_weight) {
  const Value balance = balance_of(largest_weight), halves = product.by_place(balance) * 0.5;
  const Ints apart = apart_from_places(product);
  const auto extreme = [&](auto reduce, auto meet) {
    const Value of_places = apart.empty() ? product.left : reduce(product.left, apart);
    const Value found = reduce(of_places * halves, product.left_places);
    return product.meets_zeros ? meet(found, like(found, 0)) : found;
  };
  const Value least =
      extreme([](Value x, const Ints& axes) { return reduce_min(x, axes, true); }, [](Value x, Value zero) { return min(x, zero); });
  const Value largest =
      extreme([](Value x, const Ints& axes) { return reduce_max(x, axes, true); }, [](Value x, Value zero) { return max(x, zero); });
  const Quantized rows = spread(product.padded(product.left * halves), least, largest, product.left_summed),
                  columns = symmetric(product.right / product.by_weight(balance), product.right_summed);
  const Value total = multiplied(product, rows.numbers, columns.numbers);
  const Value sums = cast(sum(cast(columns.numbers, i32), product.right_summed), f32);
  return total * product.by_column(columns.scales) * product.by_row(rows.scales) +
         product.by_row(rows.offsets) * product.by_column(sums * columns.scales);
}

Value in_int8(const WeightedProduct& product, Value largest_weight, const CalibratedRange& range) {
  constexpr double largest_number = 127, exponent = 0.6;
  const Value least = make_constant(product.left.graph(), range.least), largest = make_constant(product.left.graph(), range.largest);
  const Value centre = least * 0.5 + largest * 0.5, reach = largest * 0.5 - least * 0.5;
  // In each place, activations come nearer to the others as weights go apart (Xiao et al. 2022, SmoothQuant). MiniLM is closest to f32 so:
  // with 0.5 and 0.65, errors are twice as large.
  const Value factors = exp(log(shares(reach)) * exponent - log(shares(largest_weight)) * (1 - exponent));
  Ints all_places(product.left_places.size());
  std::iota(all_places.begin(), all_places.end(), 0);
  const Value scale = max(reduce_max(reach / factors, all_places) / largest_number, like(reach, smallest));
  const Value numbers =
      cast(round((product.padded(product.left) - product.by_place(centre)) * product.by_place(1 / (factors * scale))), i8);
  const Quantized columns = symmetric(product.right * product.by_weight(factors), product.right_summed);
  return multiplied(product, numbers, columns.numbers) * product.by_column(columns.scales * scale) +
         product.by_column(sum(product.right * product.by_weight(centre), product.right_summed));
}

std::pair<Value, Value> range_of(const WeightedProduct& product) {
  const Value x = product.left;
  const Ints others = without(x, product.left_places);
  const Value least = reduce_min(x, others), largest = reduce_max(x, others);
  const auto seen = [&](Value values) { return in_order(values, product.left_places); };
  if (!product.meets_zeros) return {seen(least), seen(largest)};
  return {seen(min(least, like(x, 0))), seen(max(largest, like(x, 0)))};
}

}  // namespace rlx
