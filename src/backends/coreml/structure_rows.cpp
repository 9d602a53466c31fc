// Ops that only move elements. Operations of CoreML that move do not take bools everywhere: those are moved as integers.
#include <algorithm>
#include <numeric>

#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

using Move = Tensor (*)(const Call& c, const Tensor& x);

template <Move move>
Tensors moved(const Call& c) {
  if (c.x[0].element != Element::boolean) return {move(c, c.x[0])};
  return {convert(c.out, move(c, convert(c.out, c.x[0], Element::i32)), Element::boolean)};
}

Tensor reshape_rule(const Call& c, const Tensor& x) { return reshape(c.out, x, c.sizes()); }
Tensor transpose_rule(const Call& c, const Tensor& x) { return transpose(c.out, x, c.numbers("perm")); }

/// Axes of size 1 stand for all sizes until an operation needs the elements.
Tensor broadcast(const Call& c, const Tensor& x) {
  const Sizes axes = c.numbers("axes");
  if (axes.empty()) return x;
  Sizes aligned(c.node.results[0].shape.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) aligned[static_cast<std::size_t>(axes[i])] = x.shape[i];
  return reshape(c.out, x, aligned);
}

Tensor slice(const Call& c, const Tensor& x) {
  const Sizes start = c.numbers("start"), limit = c.numbers("limit"), stride = c.numbers("stride");
  Tensor y = x;
  for (std::size_t d = 0; d < start.size(); ++d) y = cut(c.out, y, d, start[d], limit[d], stride[d]);
  return y;
}

Tensor pad(const Call& c, const Tensor& x) {
  const Sizes lo = c.numbers("lo"), hi = c.numbers("hi"), interior = c.numbers("interior");
  const auto fill = c.attr<double>("fill");
  Tensor y = x;
  for (std::size_t d = 0; d < lo.size(); ++d) {
    y = spread(c.out, y, d, interior[d], fill);
    if (lo[d] != 0 || hi[d] != 0) y = padded(c.out, y, d, lo[d], hi[d], fill);
  }
  return y;
}

Tensors concat_rule(const Call& c) {
  const bool words = c.x[0].element == Element::boolean;
  Tensors parts;
  for (const Tensor& x : c.x) parts.push_back(words ? convert(c.out, x, Element::i32) : x);
  return {convert(c.out, concat(c.out, parts, c.axis()), c.x[0].element)};
}

Tensor reverse(const Call& c, const Tensor& x) {
  const Sizes axes = c.numbers("axes");
  if (axes.empty()) return x;
  return c.out.add("reverse", {{"x", x}, {"axes", Immediate(axes)}}, x.element, x.shape);
}

Tensor window(const Call& c, const Tensor& x) {
  const std::int64_t axis = c.axis(), length = c.number("length"), stride = c.number("stride"), dilation = c.number("dilation");
  const std::int64_t windows = c.sizes()[static_cast<std::size_t>(axis)];
  Sizes places;
  for (std::int64_t o = 0; o < windows; ++o)
    for (std::int64_t k = 0; k < length; ++k) places.push_back(o * stride + k * dilation);
  return take(c.out, x, c.out.constant({windows, length}, places), axis);
}

/// One place of the windows at a time, spread over the result.
Tensors fold(const Call& c) {
  const std::int64_t axis = c.axis(), stride = c.number("stride"), dilation = c.number("dilation");
  const auto d = static_cast<std::size_t>(axis);
  const Tensor x = convert(c.out, c.x[0], sum_element(c.x[0].element));
  const std::int64_t extent = c.sizes()[d];
  std::optional<Tensor> sum;
  for (std::int64_t k = 0; k < x.shape[d + 1]; ++k) {
    const Tensor part = cut(c.out, x, d + 1, k, k + 1);
    Sizes shape = part.shape;
    shape.erase(shape.begin() + axis + 1);
    Tensor y = spread(c.out, reshape(c.out, part, shape), d, stride - 1, 0);
    y = padded(c.out, y, d, k * dilation, extent - k * dilation - y.shape[d], 0);
    sum = sum ? binary(c.out, "add", *sum, y) : y;
  }
  return {wrapped(c.out, convert(c.out, *sum, c.x[0].element), c.result_type())};
}

Tensors after(const Call& c) { return {c.x[0]}; }

Tensors iota(const Call& c) {
  const Sizes shape = c.sizes();
  const auto axis = static_cast<std::size_t>(c.number("axis"));
  Sizes line(shape.size(), 1), places(static_cast<std::size_t>(shape[axis]));
  line[axis] = shape[axis];
  std::iota(places.begin(), places.end(), 0);
  const Tensor numbers = convert(c.out, c.out.constant(line, places), *element_of(c.result_type()));
  return {wrapped(c.out, numbers, c.result_type())};
}

}  // namespace

Rows structure_rows() {
  static constexpr Row<Rule> rows[] = {
      {"reshape", moved<reshape_rule>},
      {"transpose", moved<transpose_rule>},
      {"broadcast", moved<broadcast>},
      {"slice", moved<slice>},
      {"pad", moved<pad>},
      {"concat", concat_rule},
      {"reverse", moved<reverse>},
      {"window", moved<window>},
      {"fold", fold},
      {"after", after},
      {"iota", iota},
  };
  return rows;
}

}  // namespace rlx::coreml
