// Convolutions as what kernels compute well: products of windows, or sums of shifted elements.
#include <algorithm>
#include <numeric>

#include "ops/broadcasting.h"
#include "ops/contraction/convolution.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

// The shape with an axis for the groups in front of the rest of `axis`.
Dims with_groups(Dims shape, std::size_t axis, std::int64_t groups) {
  shape[axis] = *Dim::exact_div(shape[axis], groups);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), Dim(groups));
  return shape;
}

// Where an axis of x is once its channels are two axes, the groups and those of a group.
std::size_t grouped_axis(const ConvOptions& op, std::int64_t axis) { return static_cast<std::size_t>(axis + (axis > op.lhs_spec[1])); }

// x with the zeros around it, its channels as (G, C / G). Its axes stay in their order, in which such a value is stored.
Value grouped_input(const ConvOptions& op, Value x) {
  const Value grouped = reshape(x, with_groups(x.shape(), static_cast<std::size_t>(op.lhs_spec[1]), op.feature_group_count));
  Dims lo(grouped.shape().size(), Dim(0)), hi = lo;
  for (std::size_t i = 0; i < op.strides.size(); ++i) {
    const std::size_t axis = grouped_axis(op, op.lhs_spec[i + 2]);
    lo[axis] = op.padding_lo[i], hi[axis] = op.padding_hi[i];
  }
  return pad(grouped, lo, hi);
}

// w as (G, O / G, C / G, lengths...).
Value grouped_kernel(const ConvOptions& op, Value w) {
  const Value kernel = transpose(w, op.rhs_spec);
  return reshape(kernel, with_groups(kernel.shape(), 0, op.feature_group_count));
}

// The result of a conv from one whose axes are those of x, with (G, O / G) in place of the channels.
Value as_result(const ConvOptions& op, Value y) {
  Dims shape = y.shape();
  const auto channels = shape.begin() + op.lhs_spec[1];
  channels[1] *= channels[0];
  shape.erase(channels);
  Ints order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[static_cast<std::size_t>(op.out_spec[i])] = op.lhs_spec[i];
  return transpose(reshape(y, shape), order);
}

// The elements of the padded input that meet the weights at a place, channel and spatial, at each position.
Value met_elements(const ConvOptions& op, Value padded, Value kernel, const Ints& at) {
  Dims start(static_cast<std::size_t>(padded.rank()), Dim(0)), limit = padded.shape(), stride(start.size(), Dim(1));
  const auto channel = static_cast<std::size_t>(op.lhs_spec[1]) + 1;
  start[channel] = at[0], limit[channel] = at[0] + 1;
  for (std::size_t i = 0; i < op.strides.size(); ++i) {
    const std::size_t axis = grouped_axis(op, op.lhs_spec[i + 2]);
    const Dim reach = (kernel.dim(static_cast<std::int64_t>(i) + 3) - 1) * op.rhs_dilation[i] + 1;
    start[axis] = at[i + 1] * op.rhs_dilation[i];
    limit[axis] = start[axis] + (limit[axis] - reach) + 1;  // from the first position to the last, or beyond
    stride[axis] = op.strides[i];
  }
  return slice(padded, start, limit, stride);
}

// The weights at a place, (G, O / G) where x has its channels.
Value weights_at(const ConvOptions& op, Value kernel, const Ints& at) {
  Dims start(static_cast<std::size_t>(kernel.rank()), Dim(0)), limit = kernel.shape();
  for (std::size_t i = 0; i < at.size(); ++i) start[i + 2] = at[i], limit[i + 2] = at[i] + 1;
  Dims stride(start.size(), Dim(1)), shape(op.lhs_spec.size() + 1, Dim(1));
  std::copy_n(kernel.shape().begin(), 2, shape.begin() + op.lhs_spec[1]);
  return reshape(slice(kernel, start, limit, stride), shape);
}

// How many products a sum of a conv has. Expects sizes that are numbers.
std::int64_t terms_of(const ConvOptions& op, const Type& w) {
  Dim terms = 1;
  for (std::size_t i = 1; i < op.rhs_spec.size(); ++i) terms *= w.dim(op.rhs_spec[i]);
  return terms.upper();
}

// The next of all places of a kernel, the last number fastest. False after the last.
bool next_place(Ints& place, const Ints& sizes) {
  for (std::size_t d = place.size(); d-- > 0; place[d] = 0)
    if (++place[d] < sizes[d]) return true;
  return false;
}

}  // namespace

ConvForm conv_form(const Attrs& attrs, const Type& x, const Type& w) {
  constexpr std::int64_t fewest_columns = 16, most_terms = 64;
  const ConvOptions op = conv_options(attrs);
  if (op.batch_group_count > 1 || conv_result(attrs, x, w).size() == Dim(0) || w.size() == Dim(0)) return ConvForm::loop;
  for (std::size_t i = 0; i < op.strides.size(); ++i) {
    const bool strided = op.strides[i] > 1 && !x.dim(op.lhs_spec[i + 2]).is_static();  // `window` takes numbers only then
    if (op.lhs_dilation[i] > 1 || strided || !w.dim(op.rhs_spec[i + 2]).is_static()) return ConvForm::loop;
  }
  if (op.feature_group_count == 1) return ConvForm::dot;
  const bool narrow = w.dim(op.rhs_spec[0]).upper() < fewest_columns * op.feature_group_count;
  return narrow && w.is_static() && terms_of(op, w) <= most_terms ? ConvForm::sums : ConvForm::dot;
}

Value conv_as_dot(const Attrs& attrs, Value x, Value w, DType wide) {
  const ConvOptions op = conv_options(attrs);
  const auto rank = static_cast<std::int64_t>(op.lhs_spec.size());
  const Value kernel = grouped_kernel(op, w);
  Value windows = grouped_input(op, x);
  // Each axis of x but the batch becomes two: groups and channels, positions and places of the kernel.
  const auto first_of = [&](std::int64_t axis) { return 2 * axis - (axis > op.lhs_spec[0]); };
  Ints contracted, of_kernel, order;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const auto role = std::find(op.lhs_spec.begin(), op.lhs_spec.end(), axis) - op.lhs_spec.begin();
    // The dot's result is (G, what x has but its channels, O / G).
    if (role == 1) order.insert(order.end(), {0, rank});
    else order.push_back(axis + (axis < op.lhs_spec[1]));
    if (role == 0) continue;
    contracted.push_back(first_of(axis) + 1);
    of_kernel.push_back(role + 1);
    const auto i = static_cast<std::size_t>(role) - 2;
    if (role > 1) windows = window(windows, first_of(axis), kernel.dim(role + 1).value(), op.strides[i], op.rhs_dilation[i]);
  }
  const std::int64_t group = first_of(op.lhs_spec[1]);
  return as_result(op, transpose(dot(cast(windows, wide), cast(kernel, wide), contracted, of_kernel, {group}, {0}), order));
}

Value conv_as_sums(const Attrs& attrs, Value x, Value w, DType wide) {
  const ConvOptions op = conv_options(attrs);
  const Value padded = grouped_input(op, x), kernel = grouped_kernel(op, w);
  Ints places;
  for (std::int64_t axis = 2; axis < kernel.rank(); ++axis) places.push_back(kernel.dim(axis).value());
  Ints at(places.size(), 0);
  const DType sum = accumulation_type(wide);
  Value total;
  do {
    const Value term = cast(met_elements(op, padded, kernel, at), sum) * cast(weights_at(op, kernel, at), sum);
    total = total ? total + term : term;
  } while (next_place(at, places));
  return as_result(op, cast(total, wide));
}

}  // namespace rlx
