// Products. f16 is multiplied and added in f32.
#include <algorithm>
#include <numeric>

#include "backends/coreml/blocks.h"
#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

std::int64_t product(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>()); }

/// One operand of a product: [batch, rows, columns] or the other way round, without the batch where it has no axes.
struct Matrices {
  Matrices(Body& out, const Tensor& x, const Sizes& batch, const Sizes& contracted, bool left) {
    Sizes free;
    for (std::int64_t d = 0; d < x.rank(); ++d)
      if (std::ranges::find(batch, d) == batch.end() && std::ranges::find(contracted, d) == contracted.end()) free.push_back(d);
    const auto order = [&](const Sizes& first, const Sizes& second) {
      Sizes perm = batch;
      perm.insert(perm.end(), first.begin(), first.end());
      perm.insert(perm.end(), second.begin(), second.end());
      return perm;
    };
    const Sizes &rows = left ? free : contracted, &columns = left ? contracted : free;
    turned = !std::ranges::is_sorted(order(rows, columns)) && std::ranges::is_sorted(order(columns, rows));
    const Sizes &first = turned ? columns : rows, &second = turned ? rows : columns;
    const auto size = [&](const Sizes& axes) {
      std::int64_t all = 1;
      for (const std::int64_t d : axes) all *= x.shape[static_cast<std::size_t>(d)];
      return all;
    };
    Sizes shape{size(first), size(second)};
    if (!batch.empty()) shape.insert(shape.begin(), size(batch));
    matrix = reshape(out, transpose(out, x, order(first, second)), shape);
    result = size(free);
  }
  Tensor matrix;
  std::int64_t result;  // rows or columns of the product
  bool turned;          // the matrices stand transposed
};

Tensor matmul(Body& out, const Matrices& x, const Matrices& z) {
  Sizes shape{x.result, z.result};
  if (x.matrix.rank() == 3) shape.insert(shape.begin(), x.matrix.shape[0]);
  return out.add("matmul", {{"x", x.matrix}, {"y", z.matrix}, {"transpose_x", Immediate(x.turned)}, {"transpose_y", Immediate(z.turned)}},
                 x.matrix.element, shape);
}

/// What products are computed in.
Element product_element(const Call& c, Element of) {
  if (of == Element::i32) return of;
  return c.out.parts().multiplies_f16 ? Element::f16 : Element::f32;
}

/// Sums of x by groups of neighbours on the last axis, for the minima of a weight in blocks.
Tensor group_sums(Body& out, const Tensor& x, std::int64_t group) {
  Sizes grouped = x.shape, sums = x.shape;
  grouped.back() /= group, sums.back() /= group;
  grouped.push_back(group);
  return out.add("reduce_sum", {{"x", reshape(out, x, grouped)}, {"axes", Immediate(Sizes{x.rank()})}, {"keep_dims", Immediate(false)}},
                 x.element, sums);
}

/// x times the transpose of a weight in blocks: the products with the codes, less the sums of x times the minima.
Tensor times_blocks(const Call& c, const Weight& weight, Element element) {
  const DecodedBlocks w = decode_on_device(c.out, weight.array, weight.blocks, element);
  const auto times = [&](const Tensor& left, const Tensor& right) {
    const Element computed = right.element;
    const Matrices a(c.out, convert(c.out, left, computed), {}, {left.rank() - 1}, true), b(c.out, right, {}, {1}, false);
    return convert(c.out, matmul(c.out, a, b), element);
  };
  const Tensor y = times(c.x[0], w.scaled);
  return w.minima ? binary(c.out, "sub", y, times(group_sums(c.out, convert(c.out, c.x[0], Element::f32), w.group), *w.minima)) : y;
}

bool is_rows_by_rows(const Call& c) {
  return c.numbers("lhs_batch").empty() && c.numbers("lhs_contract") == Sizes{c.x[0].rank() - 1} && c.numbers("rhs_contract") == Sizes{1};
}

Tensors dot(const Call& c) {
  const Element element = product_element(c, sum_element(c.x[0].element));
  const Weight* const weight = c.weight(1);
  Tensor y;
  if (weight && !weight->blocks.empty() && is_rows_by_rows(c)) {
    y = times_blocks(c, *weight, element);
  } else {
    const Tensor right = !weight                  ? c.x[1]
                         : weight->blocks.empty() ? c.out.constant(weight->array, element, weight->name)
                                                  : whole(c.out, decode_on_device(c.out, weight->array, weight->blocks, element));
    const Matrices x(c.out, convert(c.out, c.x[0], element), c.numbers("lhs_batch"), c.numbers("lhs_contract"), true);
    const Matrices z(c.out, convert(c.out, right, element), c.numbers("rhs_batch"), c.numbers("rhs_contract"), false);
    y = matmul(c.out, x, z);
  }
  return {wrapped(c.out, convert(c.out, reshape(c.out, y, c.sizes()), c.x[0].element), c.result_type())};
}

/// Groups of a batch become groups of channels: (g * n, c, ...) as (n, g * c, ...).
Tensor grouped_by_channels(Body& out, const Tensor& x, std::int64_t groups) {
  const std::int64_t n = x.shape[0] / groups, spatial = product({x.shape.begin() + 2, x.shape.end()});
  const Tensor apart = reshape(out, x, {groups, n, x.shape[1], spatial});
  Sizes shape = x.shape;
  shape[0] = n, shape[1] *= groups;
  return reshape(out, transpose(out, apart, {1, 0, 2, 3}), shape);
}

/// Zeros between the elements of the spatial axes and around them, and what negative padding cuts off.
Tensor laid_out(const Call& c, Tensor x) {
  const Sizes lo = c.numbers("padding_lo"), hi = c.numbers("padding_hi"), apart = c.numbers("lhs_dilation");
  for (std::size_t s = 0; s < lo.size(); ++s) {
    x = spread(c.out, x, s + 2, apart[s] - 1, 0);
    const std::int64_t cut_lo = std::min<std::int64_t>(0, lo[s]), cut_hi = std::min<std::int64_t>(0, hi[s]);
    if (cut_lo < 0 || cut_hi < 0) x = padded(c.out, x, s + 2, cut_lo, cut_hi, 0);
  }
  return x;
}

Tensors conv(const Call& c) {
  const Element element = c.x[0].element == Element::i32 ? Element::f32 : product_element(c, sum_element(c.x[0].element));
  const std::int64_t batch_groups = c.number("batch_group_count"), groups = std::max(batch_groups, c.number("feature_group_count"));
  Tensor x = transpose(c.out, convert(c.out, c.x[0], element), c.numbers("lhs_spec"));
  const Weight* const weight = c.weight(1);
  const bool in_floats = weight && weight->blocks.empty();
  const Tensor given = in_floats ? c.out.constant(weight->array, element, weight->name) : c.x[1];
  const Tensor w = transpose(c.out, convert(c.out, given, element), c.numbers("rhs_spec"));
  if (batch_groups > 1) x = grouped_by_channels(c.out, x, batch_groups);
  x = laid_out(c, x);
  const Sizes out_spec = c.numbers("out_spec"), shape = c.sizes(), lo = c.numbers("padding_lo"), hi = c.numbers("padding_hi");
  Sizes made, pads, back(out_spec.size());
  for (const std::int64_t axis : out_spec) made.push_back(shape[static_cast<std::size_t>(axis)]);
  for (std::size_t d = 0; d < out_spec.size(); ++d) back[static_cast<std::size_t>(out_spec[d])] = static_cast<std::int64_t>(d);
  for (std::size_t s = 0; s < lo.size(); ++s) pads.insert(pads.end(), {std::max<std::int64_t>(0, lo[s]), std::max<std::int64_t>(0, hi[s])});
  const Tensor y = c.out.add("conv",
                             {{"x", x},
                              {"weight", w},
                              {"strides", Immediate(c.numbers("strides"))},
                              {"pad_type", Immediate("custom")},
                              {"pad", Immediate(pads)},
                              {"dilations", Immediate(c.numbers("rhs_dilation"))},
                              {"groups", Immediate(static_cast<int>(groups))}},
                             element, made);
  return {wrapped(c.out, convert(c.out, transpose(c.out, y, back), c.x[0].element), c.result_type())};
}

/// Sums of products of 8 bits are exact in f32 while they stay below 2^24.
bool has_convolution(const Graph& graph, const Node& node) {
  const Type& type = node.results[0];
  const int spatial = type.rank() - 2;
  if (spatial < 1 || spatial > 3) return false;
  return is_float(type.dtype) || (info(type.dtype).bits <= 8 && graph.type(node.operands[1]).size().upper() <= 1024);
}

}  // namespace

Rows contraction_rows() {
  static constexpr Row<Rule> rows[] = {
      {"dot", dot},
      {"conv", conv, has_convolution, "CoreML convolves floats over 1 to 3 axes"},
  };
  return rows;
}

}  // namespace rlx::coreml
