// Ops that only move elements. Operations of CoreML that move do not take bools everywhere: those are moved as integers.
#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

using Move = Tensor (*)(const Call& c, const Tensor& x);

template <Move move>
Tensors moved(const Call& c) {
  return {convert(c.out, move(c, movable(c.out, c.x[0])), c.x[0].element)};
}

Tensor reshape_rule(const Call& c, const Tensor& x) { return reshape(c.out, x, c.shape()); }
Tensor transpose_rule(const Call& c, const Tensor& x) { return transpose(c.out, x, c.numbers("perm")); }

/// Axes of size 1 stand for all sizes until an operation needs the elements.
Tensor broadcast(const Call& c, const Tensor& x) {
  const Sizes axes = c.numbers("axes");
  if (axes.empty()) return x;
  Dims aligned(c.node.results[0].shape.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) aligned[static_cast<std::size_t>(axes[i])] = x.shape[i];
  return reshape(c.out, x, aligned);
}

Tensor slice(const Call& c, const Tensor& x) {
  const Dims &start = c.dims("start"), &limit = c.dims("limit");
  const Sizes stride = c.numbers("stride");
  Tensor y = x;
  for (std::size_t d = 0; d < start.size(); ++d) y = cut(c.out, y, d, start[d], limit[d], stride[d]);
  return y;
}

Tensor pad(const Call& c, const Tensor& x) {
  const Dims &lo = c.dims("lo"), &hi = c.dims("hi");
  const Sizes interior = c.numbers("interior");
  const auto fill = c.attr<double>("fill");
  Tensor y = x;
  for (std::size_t d = 0; d < lo.size(); ++d) {
    y = spread(c.out, y, d, interior[d], fill);
    if (!(lo[d] == 0 && hi[d] == 0)) y = padded(c.out, y, d, lo[d], hi[d], fill);
  }
  return y;
}

Tensors concat_rule(const Call& c) {
  Tensors parts;
  for (const Tensor& x : c.x) parts.push_back(movable(c.out, x));
  return {convert(c.out, concat(c.out, parts, c.axis()), c.x[0].element)};
}

Tensor reverse(const Call& c, const Tensor& x) { return reversed(c.out, x, c.numbers("axes")); }

Tensor window(const Call& c, const Tensor& x) {
  const std::int64_t axis = c.axis(), length = c.number("length"), stride = c.number("stride"), dilation = c.number("dilation");
  const Dim windows = c.shape()[static_cast<std::size_t>(axis)];
  const Tensor first = reshape(c.out, line(c.out, windows), {windows, 1}), behind = line(c.out, length);
  const Tensor places = binary(c.out, "add", binary(c.out, "mul", first, Immediate(static_cast<int>(stride))),
                               binary(c.out, "mul", behind, Immediate(static_cast<int>(dilation))));
  return take(c.out, x, places, axis);
}

/// One place of the windows at a time, spread over the result.
Tensors fold(const Call& c) {
  const std::int64_t axis = c.axis(), stride = c.number("stride"), dilation = c.number("dilation");
  const auto d = static_cast<std::size_t>(axis);
  const Tensor x = convert(c.out, c.x[0], sum_element(c.x[0].element));
  const Dim extent = c.shape()[d];
  std::optional<Tensor> sum;
  for (std::int64_t k = 0; k < x.shape[d + 1].value(); ++k) {
    const Tensor part = cut(c.out, x, d + 1, k, k + 1);
    Dims shape = part.shape;
    shape.erase(shape.begin() + axis + 1);
    Tensor y = spread(c.out, reshape(c.out, part, shape), d, stride - 1, 0);
    y = padded(c.out, y, d, k * dilation, extent - Dim(k * dilation) - y.shape[d], 0);
    sum = sum ? binary(c.out, "add", *sum, y) : y;
  }
  return {wrapped(c.out, convert(c.out, *sum, c.x[0].element), c.result_type())};
}

Tensors after(const Call& c) { return {c.x[0]}; }

Tensors iota(const Call& c) {
  const auto axis = static_cast<std::size_t>(c.number("axis"));
  Dims along(c.node.results[0].shape.size(), 1);
  along[axis] = c.shape()[axis];
  const Tensor numbers = convert(c.out, reshape(c.out, line(c.out, along[axis]), along), *element_of(c.result_type()));
  return {wrapped(c.out, numbers, c.result_type())};
}

}  // namespace

Rows structure_rows() {
  static constexpr Row<Rule> rows[] = {{"reshape", moved<reshape_rule>},
                                       {"transpose", moved<transpose_rule>},
                                       {"broadcast", moved<broadcast>},
                                       {"slice", moved<slice>},
                                       {"pad", moved<pad>},
                                       {"concat", concat_rule},
                                       {"reverse", moved<reverse>},
                                       {"window", moved<window>},
                                       {"fold", fold},
                                       {"after", after},
                                       {"iota", iota}};
  return rows;
}

}  // namespace rlx::coreml
