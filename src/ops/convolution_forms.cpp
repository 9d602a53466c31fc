// Convolutions as what kernels compute well: products of windows, or sums of shifted elements.
#include <algorithm>
#include <numeric>

#include "ops/broadcasting.h"
#include "ops/convolution.h"
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

// x as (N, G, C / G, spatial...), with the zeros around it.
Value grouped_input(const ConvOptions& op, Value x) {
  Dims lo(op.strides.size() + 3, Dim(0)), hi = lo;
  std::copy(op.padding_lo.begin(), op.padding_lo.end(), lo.begin() + 3);
  std::copy(op.padding_hi.begin(), op.padding_hi.end(), hi.begin() + 3);
  const Value channels_first = transpose(x, op.lhs_spec);
  return pad(reshape(channels_first, with_groups(channels_first.shape(), 1, op.feature_group_count)), lo, hi);
}

// w as (G, O / G, C / G, lengths...).
Value grouped_kernel(const ConvOptions& op, Value w) {
  const Value kernel = transpose(w, op.rhs_spec);
  return reshape(kernel, with_groups(kernel.shape(), 0, op.feature_group_count));
}

// The result of a conv from (N, G, O / G, spatial...).
Value as_result(const ConvOptions& op, Value y) {
  Dims shape(y.shape().begin() + 1, y.shape().end());
  shape[0] = y.dim(0);
  shape[1] = y.dim(1) * y.dim(2);
  Ints order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[static_cast<std::size_t>(op.out_spec[i])] = static_cast<std::int64_t>(i);
  return transpose(reshape(y, shape), order);
}

// The elements of the padded input that meet the weights at a place, channel and spatial, at each position: (N, G, 1, o1, o2, ...).
Value met_elements(const ConvOptions& op, Value padded, Value kernel, const Ints& at) {
  Dims start(static_cast<std::size_t>(padded.rank()), Dim(0)), limit = padded.shape(), stride(start.size(), Dim(1));
  start[2] = at[0], limit[2] = at[0] + 1;
  for (std::size_t i = 0; i < op.strides.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i) + 3;
    const Dim span =
        padded.dim(axis) - ((kernel.dim(axis) - 1) * op.rhs_dilation[i] + 1);  // from the first position to the last, or beyond
    start[i + 3] = at[i + 1] * op.rhs_dilation[i];
    limit[i + 3] = start[i + 3] + span + 1;
    stride[i + 3] = op.strides[i];
  }
  return slice(padded, start, limit, stride);
}

// The weights at a place, (G, O / G, 1, ...).
Value weights_at(Value kernel, const Ints& at) {
  Dims start(static_cast<std::size_t>(kernel.rank()), Dim(0)), limit = kernel.shape();
  for (std::size_t i = 0; i < at.size(); ++i) start[i + 2] = at[i], limit[i + 2] = at[i] + 1;
  Dims stride(start.size(), Dim(1)), shape(start.size() - 1, Dim(1));
  shape[0] = kernel.dim(0), shape[1] = kernel.dim(1);
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
  const std::size_t n = op.strides.size();
  Value windows = grouped_input(op, x);
  const Value kernel = grouped_kernel(op, w);
  Ints contracted{2}, of_kernel(n + 1);
  for (std::size_t i = 0; i < n; ++i) {  // (N, G, C / G, o1, k1, o2, k2, ...)
    const auto axis = static_cast<std::int64_t>(2 * i) + 3;
    windows = window(windows, axis, kernel.dim(static_cast<std::int64_t>(i) + 3).value(), op.strides[i], op.rhs_dilation[i]);
    contracted.push_back(axis + 1);
  }
  std::iota(of_kernel.begin(), of_kernel.end(), 2);
  const Value y = dot(cast(windows, wide), cast(kernel, wide), contracted, of_kernel, {1}, {0});  // (G, N, o1, o2, ..., O / G)
  Ints order{1, 0, static_cast<std::int64_t>(n) + 2};
  for (std::size_t i = 0; i < n; ++i) order.push_back(static_cast<std::int64_t>(i) + 2);
  return as_result(op, transpose(y, order));
}

Value conv_as_sums(const Attrs& attrs, Value x, Value w, DType wide) {
  const ConvOptions op = conv_options(attrs);
  const std::size_t n = op.strides.size();
  const Value padded = grouped_input(op, x), kernel = grouped_kernel(op, w);
  Ints places{kernel.dim(2).value()};
  for (std::size_t i = 0; i < n; ++i) places.push_back(kernel.dim(static_cast<std::int64_t>(i) + 3).value());
  Ints at(places.size(), 0);
  const DType sum = accumulation_type(wide);
  Value total;
  do {
    const Value term = cast(met_elements(op, padded, kernel, at), sum) * cast(weights_at(kernel, at), sum);
    total = total ? total + term : term;
  } while (next_place(at, places));
  return as_result(op, cast(total, wide));
}

}  // namespace rlx
