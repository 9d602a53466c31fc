// Ops that only move elements. Elements of types that MLX lacks move as the bytes that carry them.
#include <algorithm>
#include <numeric>

#include "backends/mlx/library/call.h"

namespace rlx::mlx {
namespace {

Results reshape(const Call& c) { return mx::reshape(c.x[0], c.shape()); }
Results transpose(const Call& c) { return mx::transpose(c.x[0], c.ints("perm")); }

Results broadcast(const Call& c) {
  const std::vector<int> axes = c.ints("axes");
  mx::Shape aligned(c.sizes().size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) aligned[static_cast<std::size_t>(axes[i])] = c.x[0].shape(static_cast<int>(i));
  return mx::broadcast_to(mx::reshape(c.x[0], aligned), c.shape());
}

mx::Shape as_shape(const std::vector<int>& values) { return {values.begin(), values.end()}; }

Results slice(const Call& c) { return mx::slice(c.x[0], as_shape(c.ints("start")), as_shape(c.ints("limit")), as_shape(c.ints("stride"))); }

Results pad(const Call& c) { return padded(c.x[0], c.ints("lo"), c.ints("interior"), c.shape(), c.attr<double>("fill")); }

Results concat(const Call& c) { return mx::concatenate({c.x.begin(), c.x.end()}, c.axis()); }

Results reverse(const Call& c) {
  mx::array y = c.x[0];
  for (const int axis : c.ints("axes")) {
    const int n = y.shape(axis);
    y = mx::take(y, mx::arange(n - 1, -1, -1), axis);
  }
  return y;
}

/// The places of a window's elements: (windows, length), all inside.
mx::array window_places(int windows, int length, int stride, int dilation) {
  return mx::add(mx::reshape(mx::arange(0, windows * stride, stride), {windows, 1}), mx::arange(0, length * dilation, dilation));
}

Results window(const Call& c) {
  const int axis = c.axis(), length = static_cast<int>(c.number("length")), stride = static_cast<int>(c.number("stride"));
  const int windows = c.shape()[static_cast<std::size_t>(axis)];
  return mx::take(c.x[0], window_places(windows, length, stride, static_cast<int>(c.number("dilation"))), axis);
}

/// Windows that lie at the same place of each other are added at a time.
Results fold(const Call& c) {
  const int axis = c.axis(), stride = static_cast<int>(c.number("stride")), dilation = static_cast<int>(c.number("dilation"));
  const mx::array x = wide(c.x[0]);
  const int windows = x.shape(axis), length = x.shape(axis + 1);
  const mx::Shape shape = c.shape();
  mx::array y = mx::zeros(shape, x.dtype());
  mx::Shape start(shape.size(), 0), stop = shape, step(shape.size(), 1);
  const auto d = static_cast<std::size_t>(axis);
  step[d] = stride;
  for (int k = 0; k < length; ++k) {
    start[d] = k * dilation, stop[d] = k * dilation + (windows - 1) * stride + 1;
    const mx::array part = mx::take(x, k, axis + 1);
    y = mx::slice_update(y, mx::add(mx::slice(y, start, stop, step), part), start, stop, step);
  }
  return as(y, dtype_of(c.result_type()));
}

Results after(const Call& c) { return c.x[0]; }

/// The bytes in row-major order.
Results reinterpret(const Call& c) {
  const mx::array bytes = mx::view(mx::flatten(mx::contiguous(c.x[0])), mx::uint8);
  return mx::reshape(mx::view(bytes, dtype_of(c.result_type())), carried_shape(c.result_type(), c.sizes()));
}

Results iota(const Call& c) {
  const mx::Shape shape = c.shape();
  const auto axis = static_cast<std::size_t>(c.number("axis"));
  mx::Shape line(shape.size(), 1);
  line[axis] = shape[axis];
  const mx::array places = mx::astype(mx::arange(0, shape[axis]), dtype_of(c.result_type()));
  return mx::broadcast_to(mx::reshape(places, line), shape);
}

}  // namespace

Rows structure_rows() {
  static constexpr Row<Rule> rows[] = {
      {"reshape", reshape}, {"transpose", transpose}, {"broadcast", broadcast},     {"slice", slice},
      {"pad", pad},         {"concat", concat},       {"reverse", reverse},         {"window", window},
      {"fold", fold},       {"after", after},         {"reinterpret", reinterpret}, {"iota", iota},
  };
  return rows;
}

}  // namespace rlx::mlx
