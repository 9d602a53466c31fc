// Products. MLX multiplies floats alone, and convolves those of f64 in f32.
#include <algorithm>
#include <bit>

#include "backends/mlx/library/call.h"

namespace rlx::mlx {
namespace {

/// A product of integers modulo their width, by `multiply`, which takes floats and adds so many `terms`: of digits that are small enough
/// for sums to be exact, as far as their places count.
template <class Multiply>
mx::array product_of_integers(const mx::array& x, const mx::array& z, mx::Dtype floats, std::int64_t terms, const Multiply& multiply) {
  const int exact_bits = floats == mx::float64 ? 53 : 24, all_bits = static_cast<int>(x.itemsize()) * 8;
  const int bits = std::clamp((exact_bits - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(terms)))) / 2, 1, 16);
  const auto exact = [&](const mx::array& a, const mx::array& b) { return as(multiply(as(a, floats), as(b, floats)), mx::int64); };
  if (all_bits <= bits) return as(exact(x, z), x.dtype());
  const auto digit = [&](const mx::array& of, int place) {
    const mx::array shifted = mx::right_shift(as(of, mx::uint64), mx::array(place, mx::uint64));
    return mx::bitwise_and(shifted, mx::array((1 << bits) - 1, mx::uint64));
  };
  mx::array sum(0, mx::uint64);
  for (int i = 0; i < all_bits; i += bits)
    for (int j = 0; i + j < all_bits; j += bits)
      sum = mx::add(sum, mx::left_shift(as(exact(digit(x, i), digit(z, j)), mx::uint64), mx::array(i + j, mx::uint64)));
  return as(sum, x.dtype());
}
bool is_integer(const mx::array& x) { return mx::issubdtype(x.dtype(), mx::integer); }

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

mx::array dot_of_floats(const Call& c, const mx::array& left, const mx::array& right) {
  const Side x(left, c.ints("lhs_batch"), c.ints("lhs_contract"), true), z(right, c.ints("rhs_batch"), c.ints("rhs_contract"), false);
  if (product_of(x.contracted) == 0) return mx::zeros(c.shape(), left.dtype());
  const bool as_it_is = x.in_order() && z.in_order() && z.free.size() == 1 && (x.batch.empty() ? !x.free.empty() : x.free.size() == 1);
  if (as_it_is) return mx::matmul(left, right);
  return mx::reshape(mx::matmul(x.matrices(), z.matrices()), c.shape());
}
Results dot(const Call& c) {
  if (!is_integer(c.x[0])) return dot_of_floats(c, c.x[0], c.x[1]);
  std::int64_t terms = 1;
  for (const int d : c.ints("lhs_contract")) terms *= c.x[0].shape(d);
  const mx::StreamContext has_f64(mx::Device::cpu);
  return product_of_integers(c.x[0], c.x[1], mx::float64, terms,
                             [&](const mx::array& x, const mx::array& z) { return dot_of_floats(c, x, z); });
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

/// Of channels last; over three axes MLX has no groups.
mx::array convolved(const mx::array& x, const mx::array& w, const std::vector<int>& strides, const std::vector<int>& lo,
                    const std::vector<int>& hi, const std::vector<int>& apart, const std::vector<int>& dilation, int groups) {
  if (groups == 1 || x.ndim() < 5) return mx::conv_general(x, w, strides, lo, hi, apart, dilation, groups);
  const std::vector<mx::array> images = mx::split(x, groups, -1), kernels = mx::split(w, groups, 0);
  std::vector<mx::array> parts;
  for (std::size_t g = 0; g < images.size(); ++g)
    parts.push_back(mx::conv_general(images[g], kernels[g], strides, lo, hi, apart, dilation, 1));
  return mx::concatenate(parts, -1);
}

mx::array conv_of_floats(const Call& c, const mx::array& image, const mx::array& kernel) {
  const auto batch_groups = static_cast<int>(c.number("batch_group_count"));
  const auto feature_groups = static_cast<int>(c.number("feature_group_count"));
  std::vector<int> lo = c.ints("padding_lo"), hi = c.ints("padding_hi"), dilation = c.ints("lhs_dilation");
  mx::array x = mx::transpose(image, channels_last(c.ints("lhs_spec")));
  const mx::array w = mx::transpose(kernel, channels_last(c.ints("rhs_spec")));
  if (batch_groups > 1) x = grouped_by_channels(x, batch_groups);
  x = with_borders(x, lo, hi, dilation);
  const mx::array y = convolved(x, w, c.ints("strides"), lo, hi, c.ints("rhs_dilation"), dilation, std::max(batch_groups, feature_groups));
  return mx::transpose(y, inverse(channels_last(c.ints("out_spec"))));
}
Results conv(const Call& c) {
  const mx::array& kernel = c.x[1];
  if (kernel.dtype() == mx::complex64) {
    const mx::array re = mx::real(c.x[0]), im = mx::imag(c.x[0]), kernel_re = mx::real(kernel), kernel_im = mx::imag(kernel);
    return complex_of(mx::subtract(conv_of_floats(c, re, kernel_re), conv_of_floats(c, im, kernel_im)),
                      mx::add(conv_of_floats(c, re, kernel_im), conv_of_floats(c, im, kernel_re)));
  }
  if (!is_integer(kernel)) return conv_of_floats(c, c.x[0], kernel);
  const std::int64_t terms = static_cast<std::int64_t>(kernel.size()) / std::max(1, kernel.shape(c.ints("rhs_spec")[0]));
  return product_of_integers(c.x[0], kernel, mx::float32, terms,
                             [&](const mx::array& x, const mx::array& z) { return conv_of_floats(c, x, z); });
}

bool is_plain_conv(const Graph&, const Node& node) {
  const Type& type = node.results[0];
  const int spatial = type.rank() - 2;
  return type.dtype != f64 && type.dtype != c128 && spatial >= 1 && spatial <= 3;
}

}  // namespace

Rows contraction_rows() {
  static constexpr Row<Rule> rows[] = {
      {"dot", dot},
      {"ragged_dot", ragged_dot, is_narrow_float, "MLX gathers matrices of f32"},
      {"conv", conv, is_plain_conv, "MLX convolves numbers of up to f32 over 1 to 3 axes"},
  };
  return rows;
}

}  // namespace rlx::mlx
