// Products. MLX multiplies floats alone: narrow integers are exact as f64.
#include <algorithm>

#include "backends/mlx/library/call.h"

namespace rlx::mlx {
namespace {

/// The type in which MLX multiplies these elements with all their bits.
mx::Dtype product_type(const mx::array& x) { return mx::issubdtype(x.dtype(), mx::integer) ? mx::float64 : x.dtype(); }

/// A product as integers have it: modulo their width.
mx::array product_as(const mx::array& y, mx::Dtype dtype) {
  return mx::issubdtype(dtype, mx::integer) ? as(as(y, mx::int64), dtype) : as(y, dtype);
}

int product_of(const mx::Shape& sizes) {
  std::int64_t all = 1;
  for (const auto size : sizes) all *= size;
  return shape_of({all})[0];
}

/// The axes of one operand: batch, free, contracted.
struct Side {
  Side(const mx::array& of, std::vector<int> batch_axes, const std::vector<int>& contracted_axes, bool left) : x(of) {
    std::vector<int> free_axes;
    const auto in = [](const std::vector<int>& list, int d) { return std::ranges::find(list, d) != list.end(); };
    for (int d = 0; d < static_cast<int>(x.ndim()); ++d)
      if (!in(batch_axes, d) && !in(contracted_axes, d)) free_axes.push_back(d);
    for (int d : batch_axes) batch.push_back(x.shape(d));
    for (int d : free_axes) free.push_back(x.shape(d));
    for (int d : contracted_axes) contracted.push_back(x.shape(d));
    const std::vector<int>&first = left ? free_axes : contracted_axes, &second = left ? contracted_axes : free_axes;
    perm = std::move(batch_axes);
    perm.insert(perm.end(), first.begin(), first.end());
    perm.insert(perm.end(), second.begin(), second.end());
    rows = product_of(left ? free : contracted), columns = product_of(left ? contracted : free);
  }
  bool in_order() const { return std::ranges::is_sorted(perm) && contracted.size() == 1; }
  /// A matrix for each of the batch; of a batch of one the matrix alone, which MLX multiplies without a loop.
  mx::array matrices() const {
    const mx::array moved = mx::transpose(x, perm);
    const int count = product_of(batch);
    return mx::reshape(moved, count == 1 ? mx::Shape{rows, columns} : mx::Shape{count, rows, columns});
  }

  const mx::array& x;
  std::vector<int> perm;
  mx::Shape batch, free, contracted;
  int rows = 0, columns = 0;
};

Results dot(const Call& c) {
  const mx::Dtype dtype = product_type(c.x[0]);
  const mx::array left = as(c.x[0], dtype), right = as(c.x[1], dtype);
  const Side x(left, c.ints("lhs_batch"), c.ints("lhs_contract"), true), z(right, c.ints("rhs_batch"), c.ints("rhs_contract"), false);
  if (product_of(x.contracted) == 0) return mx::zeros(c.shape(), c.x[0].dtype());
  const bool as_it_is = x.in_order() && z.in_order() && z.free.size() == 1 && (x.batch.empty() ? !x.free.empty() : x.free.size() == 1);
  if (as_it_is) return product_as(mx::matmul(left, right), c.x[0].dtype());
  return product_as(mx::reshape(mx::matmul(x.matrices(), z.matrices()), c.shape()), c.x[0].dtype());
}

/// Each row with the matrix of its group; behind the last of them there are zeros.
Results ragged_dot(const Call& c) {
  const mx::array x = mx::expand_dims(wide(c.x[0]), 1), w = wide(c.x[1]);
  if (w.size() == 0) return mx::zeros(c.shape(), c.x[0].dtype());
  const int rows = x.shape(0), groups = w.shape(0);
  const mx::array ends = mx::cumsum(clamped(c.x[2], rows), 0), row = mx::reshape(mx::arange(0, rows), {rows, 1});
  const mx::array passed = mx::sum(as(mx::less_equal(ends, row), mx::int32), 1);
  const mx::array y = mx::gather_mm(x, w, std::nullopt, clamped(passed, groups - 1));
  const mx::array there = mx::less(mx::expand_dims(passed, 1), mx::array(groups));
  return as(mx::where(there, mx::squeeze(y, 1), mx::array(0.0F)), c.x[0].dtype());
}
bool is_narrow_float(const Graph& graph, const Node& node) {
  const DType dtype = graph.type(node.operands[0]).dtype;
  return is_float(dtype) && dtype != f64;
}

/// A permutation that brings the axes of a specification to MLX's order: (first, spatial..., second).
std::vector<int> channels_last(const std::vector<int>& spec) {
  std::vector<int> perm{spec[0]};
  perm.insert(perm.end(), spec.begin() + 2, spec.end());
  perm.push_back(spec[1]);
  return perm;
}

/// Groups of a batch become groups of channels: (g * n, ..., c) as (n, ..., g * c).
mx::array grouped_by_channels(const mx::array& x, int groups) {
  mx::Shape apart = x.shape(), merged = x.shape();
  apart[0] /= groups, merged[0] /= groups, merged.back() *= groups;
  apart.insert(apart.begin(), groups);
  return mx::reshape(mx::moveaxis(mx::reshape(x, apart), 0, static_cast<int>(x.ndim()) - 1), merged);
}

/// The borders of a convolution, made where MLX would miscount them: of dilated inputs that are cut.
mx::array with_borders(const mx::array& x, std::vector<int>& lo, std::vector<int>& hi, std::vector<int>& dilation) {
  const auto is_negative = [](int border) { return border < 0; };
  if (std::ranges::none_of(lo, is_negative) && std::ranges::none_of(hi, is_negative)) return x;
  std::vector<int> before{0}, between{0};
  mx::Shape shape{x.shape(0)};
  for (std::size_t d = 0; d < lo.size(); ++d) {
    const int n = x.shape(static_cast<int>(d) + 1);
    before.push_back(lo[d]), between.push_back(dilation[d] - 1);
    shape.push_back((n > 0 ? (n - 1) * dilation[d] + 1 : 0) + lo[d] + hi[d]);
    lo[d] = hi[d] = 0, dilation[d] = 1;
  }
  before.push_back(0), between.push_back(0), shape.push_back(x.shape(-1));
  return padded(x, before, between, shape, 0);
}

Results conv(const Call& c) {
  const mx::Dtype dtype = product_type(c.x[0]);
  const auto batch_groups = static_cast<int>(c.number("batch_group_count"));
  const auto feature_groups = static_cast<int>(c.number("feature_group_count"));
  std::vector<int> lo = c.ints("padding_lo"), hi = c.ints("padding_hi"), dilation = c.ints("lhs_dilation");
  mx::array x = as(mx::transpose(c.x[0], channels_last(c.ints("lhs_spec"))), dtype);
  const mx::array w = as(mx::transpose(c.x[1], channels_last(c.ints("rhs_spec"))), dtype);
  if (batch_groups > 1) x = grouped_by_channels(x, batch_groups);
  x = with_borders(x, lo, hi, dilation);
  const mx::array y =
      mx::conv_general(x, w, c.ints("strides"), lo, hi, c.ints("rhs_dilation"), dilation, std::max(batch_groups, feature_groups));
  return product_as(mx::transpose(y, inverse(channels_last(c.ints("out_spec")))), c.x[0].dtype());
}

bool fits_f64(DType dtype) { return !is_integer(dtype) || info(dtype).bits <= 16; }
bool is_narrow(const Graph&, const Node& node) { return fits_f64(node.results[0].dtype); }
bool is_plain_conv(const Graph&, const Node& node) {
  const Type& type = node.results[0];
  const auto group = [&](std::size_t back) { return std::get<std::int64_t>(node.attrs[node.attrs.size() - back]); };
  const int spatial = type.rank() - 2;
  return fits_f64(type.dtype) && !is_complex(type.dtype) && spatial >= 1 && spatial <= (group(1) > 1 || group(2) > 1 ? 2 : 3);
}

}  // namespace

Rows contraction_rows() {
  static constexpr Row<Rule> rows[] = {
      {"dot", dot, is_narrow, "MLX multiplies no integers, and f64 holds products of up to 16 bits"},
      {"ragged_dot", ragged_dot, is_narrow_float, "MLX gathers matrices of f32"},
      {"conv", conv, is_plain_conv, "MLX convolves real numbers over 1 to 3 axes, with groups over 2"},
  };
  return rows;
}

}  // namespace rlx::mlx
