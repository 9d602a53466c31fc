// Ops that only move elements.
#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

Tensors reshape_rule(const Call& c) { return {reshape(c.out, c.x[0], c.shape())}; }
Tensors transpose_rule(const Call& c) { return {transpose(c.out, c.x[0], c.numbers("perm"))}; }

/// Axes of size 1 stand for all sizes until an operation needs the elements.
Tensors broadcast(const Call& c) {
  const Tensor& x = c.x[0];
  const Sizes axes = c.numbers("axes");
  if (axes.empty()) return {x};
  Dims aligned(c.node.results[0].shape.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) aligned[static_cast<std::size_t>(axes[i])] = x.shape[i];
  return {reshape(c.out, x, aligned)};
}

Tensors slice(const Call& c) {
  const Dims &start = c.dims("start"), &limit = c.dims("limit");
  const Sizes stride = c.numbers("stride");
  Tensor y = c.x[0];
  for (std::size_t d = 0; d < start.size(); ++d) y = cut(c.out, y, d, start[d], limit[d], stride[d]);
  return {y};
}

Tensors pad(const Call& c) {
  const Dims &lo = c.dims("lo"), &hi = c.dims("hi");
  const Sizes interior = c.numbers("interior");
  const auto fill = c.attr<double>("fill");
  Tensor y = c.x[0];
  for (std::size_t d = 0; d < lo.size(); ++d) {
    y = spread(c.out, y, d, interior[d], fill);
    if (!(lo[d] == 0 && hi[d] == 0)) y = padded(c.out, y, d, lo[d], hi[d], fill);
  }
  return {y};
}

Tensors concat_rule(const Call& c) { return {concat(c.out, c.x, c.axis())}; }
Tensors reverse(const Call& c) { return {reversed(c.out, c.x[0], c.numbers("axes"))}; }

Tensors window(const Call& c) {
  const std::int64_t axis = c.axis(), length = c.number("length"), stride = c.number("stride"), dilation = c.number("dilation");
  const Dim windows = c.shape()[static_cast<std::size_t>(axis)];
  const Tensor first = reshape(c.out, line(c.out, windows), {windows, 1}), behind = line(c.out, length);
  const Tensor places = binary(c.out, "add", binary(c.out, "mul", first, Immediate(static_cast<int>(stride))),
                               binary(c.out, "mul", behind, Immediate(static_cast<int>(dilation))));
  return {take(c.out, c.x[0], places, axis)};
}

/// One place of the windows at a time, spread over the result.
Tensors fold(const Call& c) {
  const std::int64_t axis = c.axis(), stride = c.number("stride"), dilation = c.number("dilation");
  const auto d = static_cast<std::size_t>(axis);
  const Tensor& x = c.x[0];
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
  return {wrapped(c.out, *sum, c.result_type())};
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
  static constexpr Row<Rule> rows[] = {{"reshape", reshape_rule},
                                       {"transpose", transpose_rule},
                                       {"broadcast", broadcast},
                                       {"slice", slice},
                                       {"pad", pad},
                                       {"concat", concat_rule},
                                       {"reverse", reverse},
                                       {"window", window},
                                       {"fold", fold},
                                       {"after", after},
                                       {"iota", iota}};
  return rows;
}

}  // namespace rlx::coreml
