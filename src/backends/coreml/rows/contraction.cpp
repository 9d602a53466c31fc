// Products.
#include <algorithm>

#include "backends/coreml/blocks.h"
#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

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
    const auto all = [&](const Sizes& axes) {
      Dim product = 1;
      for (const std::int64_t d : axes) product *= x.shape[static_cast<std::size_t>(d)];
      return product;
    };
    Dims shape{all(first), all(second)};
    if (!batch.empty()) shape.insert(shape.begin(), all(batch));
    matrix = reshape(out, transpose(out, x, order(first, second)), shape);
  }
  Tensor matrix;
  bool turned;  // the matrices stand transposed
};

Tensor matmul(Body& out, const Matrices& x, const Matrices& z) { return matmul(out, x.matrix, z.matrix, x.turned, z.turned); }

/// Sums of x by groups of neighbours on the last axis, for the minima of a weight in blocks.
Tensor group_sums(Body& out, const Tensor& x, std::int64_t group) {
  Dims grouped = x.shape;
  grouped.back() = x.shape.back().value() / group;
  grouped.push_back(group);
  return reduced(out, "sum", reshape(out, x, grouped), {x.rank()});
}

/// x times the transpose of a weight in blocks: the products with the codes, less the sums of x times the minima.
Tensor times_blocks(const Call& c, const Weight& weight) {
  const DecodedBlocks w = decode_on_device(c.out, weight);
  const auto times = [&](const Tensor& left, const Tensor& right) {
    const Matrices a(c.out, convert(c.out, left, right.element), {}, {left.rank() - 1}, true), b(c.out, right, {}, {1}, false);
    return convert(c.out, matmul(c.out, a, b), Element::f32);
  };
  const Tensor y = times(c.x[0], w.scaled);
  return w.minima ? binary(c.out, "sub", y, times(group_sums(c.out, convert(c.out, c.x[0], Element::f32), w.group), *w.minima)) : y;
}

/// 8-bit integers as floats, by the operations by which CoreML knows such products.
Tensor int8_operand(const Call& c, std::size_t i) {
  constexpr Element element = Element::f32;
  c.out.parts().needs(Target::ios17, "products of 8 bits");
  const Immediate one(element, 1);
  const Weight* const weight = c.weight(i);
  const Tensor codes =
      weight ? c.out.codes(weight->array)
             : c.out.add("quantize", {{"input", convert(c.out, c.x[i], element)}, {"scale", one}, {"output_dtype", Immediate("int8")}},
                         Element::i8, c.x[i].shape);
  return c.out.add("dequantize", {{"input", codes}, {"scale", one}}, element, codes.shape);
}

/// Floats of a weight in the elements of a product.
Tensor given_weight(const Call& c, const Weight& weight, Element element) {
  if (!weight.blocks.empty()) return decoded(c.out, weight, element);
  return is_float(c.type(1)) ? c.out.constant(weight.array, element, weight.name) : c.out.constant(weight.array, weight.name);
}

/// Both operands of a product as it is computed.
std::pair<Tensor, Tensor> operands(const Call& c, Element element) {
  if (multiplies_int8(c.graph, c.node)) return {int8_operand(c, 0), int8_operand(c, 1)};
  const Weight* const weight = c.weight(1);
  return {convert(c.out, c.x[0], element), convert(c.out, weight ? given_weight(c, *weight, element) : c.x[1], element)};
}

Tensor as_result(const Call& c, const Tensor& y) { return wrapped(c.out, convert(c.out, y, c.result().element), c.result_type()); }

bool is_rows_by_rows(const Call& c) {
  return c.numbers("lhs_batch").empty() && c.numbers("lhs_contract") == Sizes{c.x[0].rank() - 1} && c.numbers("rhs_contract") == Sizes{1};
}

Tensors dot(const Call& c) {
  const Weight* const weight = c.weight(1);
  Tensor y;
  if (weight && !weight->blocks.empty() && is_rows_by_rows(c)) {
    y = times_blocks(c, *weight);
  } else {
    const auto [left, right] = operands(c, c.x[0].element);
    const Matrices x(c.out, left, c.numbers("lhs_batch"), c.numbers("lhs_contract"), true);
    const Matrices z(c.out, right, c.numbers("rhs_batch"), c.numbers("rhs_contract"), false);
    y = matmul(c.out, x, z);
  }
  return {as_result(c, reshape(c.out, y, c.shape()))};
}

/// Groups of a batch become groups of channels: (g * n, c, ...) as (n, g * c, ...).
Tensor grouped_by_channels(Body& out, const Tensor& x, std::int64_t groups) {
  const Dim n = *Dim::exact_div(x.shape[0], groups), spatial = product({x.shape.begin() + 2, x.shape.end()});
  const Tensor apart = reshape(out, x, {groups, n, x.shape[1], spatial});
  Dims shape = x.shape;
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
  const Element element = c.x[0].element == Element::i32 ? Element::f32 : c.x[0].element;
  const std::int64_t batch_groups = c.number("batch_group_count"), groups = std::max(batch_groups, c.number("feature_group_count"));
  const auto [image, kernel] = operands(c, element);
  Tensor x = transpose(c.out, image, c.numbers("lhs_spec"));
  const Tensor w = transpose(c.out, kernel, c.numbers("rhs_spec"));
  if (batch_groups > 1) x = grouped_by_channels(c.out, x, batch_groups);
  x = laid_out(c, x);
  const Sizes out_spec = c.numbers("out_spec"), lo = c.numbers("padding_lo"), hi = c.numbers("padding_hi");
  const Dims& shape = c.shape();
  Dims made;
  Sizes pads;
  for (const std::int64_t axis : out_spec) made.push_back(shape[static_cast<std::size_t>(axis)]);
  for (std::size_t s = 0; s < lo.size(); ++s) pads.insert(pads.end(), {std::max<std::int64_t>(0, lo[s]), std::max<std::int64_t>(0, hi[s])});
  const Tensor y = c.out.add("conv",
                             {{"x", x},
                              {"weight", w},
                              {"strides", Immediate(c.numbers("strides"))},
                              {"pad_type", Immediate("custom")},
                              {"pad", Immediate(pads)},
                              {"dilations", Immediate(c.numbers("rhs_dilation"))},
                              {"groups", Immediate(static_cast<int>(groups))}},
                             x.element, made);
  return {as_result(c, transpose(c.out, y, inverse(out_spec)))};
}

/// Sums of products of 8 bits are exact in f32 while they stay below 2^24.
bool has_convolution(const Graph& graph, const Node& node) {
  const Type& type = node.results[0];
  const int spatial = type.rank() - 2;
  if (spatial < 1 || spatial > 3) return false;
  return is_float(type.dtype) || multiplies_int8(graph, node) ||
         (info(type.dtype).bits <= 8 && graph.type(node.operands[1]).size().upper() <= 1024);
}

}  // namespace

Rows contraction_rows() {
  static constexpr Row<Rule> rows[] = {{"dot", dot}, {"conv", conv, has_convolution, "CoreML convolves floats over 1 to 3 axes"}};
  return rows;
}

}  // namespace rlx::coreml
