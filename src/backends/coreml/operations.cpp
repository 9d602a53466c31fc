#include "backends/coreml/operations.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace rlx::coreml {
namespace {

Sizes shape_of(const Argument& argument) {
  const auto* tensor = std::get_if<Tensor>(&argument);
  return tensor ? tensor->shape : Sizes{};
}

Sizes joined(const Sizes& a, const Sizes& b) {
  Sizes shape(std::max(a.size(), b.size()), 1);
  const auto stretch = [&](const Sizes& from) {
    for (std::size_t d = 0; d < from.size(); ++d) {
      std::int64_t& size = shape[shape.size() - from.size() + d];
      if (size == 1) size = from[d];
    }
  };
  stretch(a);
  stretch(b);
  return shape;
}

Element element_of_either(const Argument& a, const Argument& b) {
  const auto* tensor = std::get_if<Tensor>(&a);
  return tensor ? tensor->element : std::get<Tensor>(b).element;
}

/// `count` elements of one value before or behind those along an axis.
Tensor fill_along(Body& out, const Tensor& like, std::size_t axis, std::int64_t count, double value) {
  Sizes shape = like.shape;
  shape[axis] = count;
  return filled(out, like.element, shape, value);
}

}  // namespace

Tensor unary(Body& out, std::string_view type, const Tensor& x) { return out.add(type, {{"x", x}}, x.element, x.shape); }

Tensor binary(Body& out, std::string_view type, const Argument& a, const Argument& b) {
  return out.add(type, {{"x", a}, {"y", b}}, element_of_either(a, b), joined(shape_of(a), shape_of(b)));
}

Tensor compare(Body& out, std::string_view type, const Argument& a, const Argument& b) {
  return out.add(type, {{"x", a}, {"y", b}}, Element::boolean, joined(shape_of(a), shape_of(b)));
}

Tensor select(Body& out, const Tensor& condition, const Argument& a, const Argument& b) {
  const Sizes values = joined(shape_of(a), shape_of(b)), shape = joined(condition.shape, values);
  Argument first = a, second = b;
  if (values != shape) {  // CoreML stretches values to each other, not to the condition
    Argument& narrow = std::holds_alternative<Tensor>(first) ? first : second;
    narrow = stretched(out, std::get<Tensor>(narrow), shape);
  }
  return out.add("select", {{"cond", condition}, {"a", first}, {"b", second}}, element_of_either(a, b), shape);
}

Tensor logical(Body& out, std::string_view type, const Tensor& a, const Tensor& b) { return compare(out, type, a, b); }
Tensor logical_not(Body& out, const Tensor& a) { return unary(out, "logical_not", a); }

Tensor convert(Body& out, const Tensor& x, Element element) {
  if (x.element == element) return x;
  const char* const word = element == Element::f32 ? "fp32" : element == Element::f16 ? "fp16" : element == Element::i32 ? "int32" : "bool";
  return out.add("cast", {{"x", x}, {"dtype", Immediate(word)}}, element, x.shape);
}

Tensor reshape(Body& out, const Tensor& x, const Sizes& shape) {
  if (x.shape == shape) return x;
  if (shape.empty()) {
    Sizes axes;
    for (int d = 0; d < x.rank(); ++d) axes.push_back(d);
    return out.add("squeeze", {{"x", x}, {"axes", Immediate(axes)}}, x.element, {});
  }
  if (x.shape.empty()) {
    const Tensor one = out.add("expand_dims", {{"x", x}, {"axes", Immediate(Sizes{0})}}, x.element, {1});
    return reshape(out, one, shape);
  }
  return out.add("reshape", {{"x", x}, {"shape", Immediate(shape)}}, x.element, shape);
}

Tensor transpose(Body& out, const Tensor& x, const Sizes& perm) {
  if (std::ranges::is_sorted(perm)) return x;
  Sizes shape;
  for (const std::int64_t axis : perm) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  return out.add("transpose", {{"x", x}, {"perm", Immediate(perm)}}, x.element, shape);
}

Tensor cut(Body& out, const Tensor& x, std::size_t axis, std::int64_t begin, std::int64_t end, std::int64_t stride) {
  if (begin == 0 && end == x.shape[axis] && stride == 1) return x;
  Sizes from(x.shape.size(), 0), to = x.shape, steps(x.shape.size(), 1), shape = x.shape;
  from[axis] = begin, to[axis] = end, steps[axis] = stride, shape[axis] = (end - begin + stride - 1) / stride;
  return out.add("slice_by_index", {{"x", x}, {"begin", Immediate(from)}, {"end", Immediate(to)}, {"stride", Immediate(steps)}}, x.element,
                 shape);
}

Tensor concat(Body& out, const Tensors& parts, std::int64_t axis) {
  Tensors some;  // parts without elements are no tensors of CoreML
  Sizes shape = parts[0].shape;
  std::int64_t& size = shape[static_cast<std::size_t>(axis)] = 0;
  for (const Tensor& part : parts) {
    const std::int64_t along = part.shape[static_cast<std::size_t>(axis)];
    size += along;
    if (along > 0) some.push_back(part);
  }
  if (some.size() == 1) return some[0];
  return out.add("concat", {{"values", some}, {"axis", Immediate(static_cast<int>(axis))}, {"interleave", Immediate(false)}},
                 parts[0].element, shape);
}

Tensor filled(Body& out, Element element, const Sizes& shape, double value) {
  if (shape.empty())
    return out.constant(Array::of(element == Element::f16   ? f16
                                  : element == Element::f32 ? f32
                                  : element == Element::i32 ? i32
                                                            : boolean,
                                  {}, std::array{static_cast<float>(value)}));
  return out.add("fill", {{"shape", Immediate(shape)}, {"value", Immediate(element, value)}}, element, shape);
}

Tensor take(Body& out, const Tensor& x, const Tensor& places, std::int64_t axis) {
  Sizes shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), places.shape.begin(), places.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  return out.add("gather",
                 {{"x", x},
                  {"indices", places},
                  {"axis", Immediate(static_cast<int>(axis))},
                  {"batch_dims", Immediate(0)},
                  {"validate_indices", Immediate(false)}},
                 x.element, shape);
}

Tensor stretched(Body& out, const Tensor& x, const Sizes& shape) {
  if (x.shape == shape) return x;
  if (x.shape.size() < shape.size()) {
    Sizes aligned(shape.size() - x.shape.size(), 1);
    aligned.insert(aligned.end(), x.shape.begin(), x.shape.end());
    return stretched(out, reshape(out, x, aligned), shape);
  }
  if (x.element == Element::boolean) return convert(out, stretched(out, convert(out, x, Element::i32), shape), Element::boolean);
  Sizes times(shape.size(), 1);
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (x.shape[d] != shape[d]) times[d] = shape[d];
  return out.add("tile", {{"x", x}, {"reps", Immediate(times)}}, x.element, shape);
}

Tensor spread(Body& out, const Tensor& x, std::size_t axis, std::int64_t between, double value) {
  const std::int64_t n = x.shape[axis];
  if (between == 0 || n <= 1) return x;
  const auto product = [](auto begin, auto end) { return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>()); };
  const auto at = x.shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const std::int64_t outer = product(x.shape.begin(), at), inner = product(at + 1, x.shape.end());
  const Tensor flat = reshape(out, x, {outer, n, inner});
  const Tensor all = concat(out, {flat, filled(out, x.element, {outer, n, between * inner}, value)}, 2);
  Sizes shape = x.shape;
  shape[axis] = n * (between + 1);
  return cut(out, reshape(out, all, shape), axis, 0, shape[axis] - between);
}

Tensor padded(Body& out, const Tensor& x, std::size_t axis, std::int64_t lo, std::int64_t hi, double value) {
  const std::int64_t size = x.shape[axis];
  const std::int64_t from = std::min(size, std::max<std::int64_t>(0, -lo)), to = std::max(from, size - std::max<std::int64_t>(0, -hi));
  const std::int64_t total = size + lo + hi;
  const std::int64_t before = std::min(total, std::max<std::int64_t>(0, lo)), behind = total - before - (to - from);
  Tensors parts;
  if (before > 0) parts.push_back(fill_along(out, x, axis, before, value));
  if (to > from) parts.push_back(cut(out, x, axis, from, to));
  if (behind > 0) parts.push_back(fill_along(out, x, axis, behind, value));
  return parts.size() == 1 ? parts[0] : concat(out, parts, static_cast<std::int64_t>(axis));
}

Tensor wrapped(Body& out, const Tensor& x, DType dtype) {
  if (!is_integer(dtype) || dtype == i32) return x;
  const double range = static_cast<double>(std::int64_t{1} << info(dtype).bits), half = is_signed_int(dtype) ? range / 2 : 0;
  Tensor y = half > 0 ? binary(out, "add", x, number(x, half)) : x;
  y = binary(out, "mod", y, number(y, range));
  return half > 0 ? binary(out, "sub", y, number(y, half)) : y;
}

}  // namespace rlx::coreml
