#include "backends/coreml/operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace rlx::coreml {
namespace {

Dims shape_of(const Argument& argument) {
  const auto* tensor = std::get_if<Tensor>(&argument);
  return tensor ? tensor->shape : Dims{};
}

Dims joined(const Dims& a, const Dims& b) {
  Dims shape(std::max(a.size(), b.size()), 1);
  for (const Dims* from : {&a, &b})
    for (std::size_t d = 0; d < from->size(); ++d)
      if (Dim& size = shape[shape.size() - from->size() + d]; size == 1) size = (*from)[d];
  return shape;
}

Element element_of_either(const Argument& a, const Argument& b) {
  const auto* tensor = std::get_if<Tensor>(&a);
  return tensor ? tensor->element : std::get<Tensor>(b).element;
}

/// `count` elements of one value before or behind those along an axis.
Tensor fill_along(Body& out, const Tensor& like, std::size_t axis, const Dim& count, double value) {
  Dims shape = like.shape;
  shape[axis] = count;
  return filled(out, like.element, shape, value);
}

bool is_open(const Dim& dim) { return !dim.is_static(); }
bool are_open(const Dims& dims) { return std::ranges::any_of(dims, is_open); }

Sizes values_of(const Dims& dims) {
  Sizes values;
  for (const Dim& dim : dims) values.push_back(dim.value());
  return values;
}

/// Which of two sizes is larger in every run.
Dim larger(const Dim& a, const Dim& b) {
  if ((a - b).known_non_negative()) return a;
  if ((b - a).known_non_negative()) return b;
  fail("which of the sizes {} and {} is larger is left to a run", a.to_string(), b.to_string());
}
Dim lesser(const Dim& a, const Dim& b) { return larger(a, b) == a ? b : a; }

/// A polynomial over the sizes of the inputs: [1].
Tensor computed(Body& out, const Dim& dim) {
  if (dim.is_static()) return out.constant({1}, {dim.value()});
  std::optional<Tensor> sum;
  for (const Dim::Term& term : dim.terms()) {
    std::optional<Tensor> product;
    for (const auto& symbol : term.symbols) {
      const auto factor = out.parts().symbols.find(symbol->name);
      if (factor == out.parts().symbols.end()) fail("no input has an axis of the size {} alone", symbol->name);
      product = product ? binary(out, "mul", *product, factor->second) : factor->second;
    }
    if (!product) product = out.constant({1}, {term.coefficient});
    else if (term.coefficient != 1) product = binary(out, "mul", *product, Immediate(static_cast<int>(term.coefficient)));
    sum = sum ? binary(out, "add", *sum, *product) : product;
  }
  return *sum;
}

}  // namespace

Argument size(Body& out, const Dim& dim) {
  if (dim.is_static()) return Immediate(static_cast<int>(dim.value()));
  return out.made_once("size " + dim.to_string(), [&] { return Tensors{reshape(out, computed(out, dim), {})}; })[0];
}

Argument sizes(Body& out, const Dims& dims) {
  if (!are_open(dims)) return Immediate(values_of(dims));
  return out.made_once("sizes " + to_string(dims), [&] {
    Tensors all;
    for (const Dim& dim : dims) all.push_back(computed(out, dim));
    return Tensors{concat(out, all, 0)};
  })[0];
}

Tensor line(Body& out, const Dim& n) {
  return out.made_once("line " + n.to_string(), [&]() -> Tensors {
    if (is_open(n))
      return {out.add("range_1d", {{"start", Immediate(0)}, {"end", size(out, n)}, {"step", Immediate(1)}}, Element::i32, {n})};
    Sizes numbers(static_cast<std::size_t>(n.value()));
    std::iota(numbers.begin(), numbers.end(), 0);
    return {out.constant({n.value()}, numbers)};
  })[0];
}

Tensor unary(Body& out, std::string_view type, const Tensor& x) { return out.add(type, {{"x", x}}, x.element, x.shape); }

Tensor binary(Body& out, std::string_view type, const Argument& a, const Argument& b) {
  return out.add(type, {{"x", a}, {"y", b}}, element_of_either(a, b), joined(shape_of(a), shape_of(b)));
}

Tensor compare(Body& out, std::string_view type, const Argument& a, const Argument& b) {
  return out.add(type, {{"x", a}, {"y", b}}, Element::boolean, joined(shape_of(a), shape_of(b)));
}

Tensor select(Body& out, const Tensor& condition, const Argument& a, const Argument& b) {
  const Dims values = joined(shape_of(a), shape_of(b)), shape = joined(condition.shape, values);
  Argument first = a, second = b;
  if (values != shape) {  // CoreML stretches values to each other, not to the condition
    Argument& narrow = std::holds_alternative<Tensor>(first) ? first : second;
    narrow = stretched(out, std::get<Tensor>(narrow), shape);
  }
  return out.add("select", {{"cond", condition}, {"a", first}, {"b", second}}, element_of_either(a, b), shape);
}

Tensor logical_not(Body& out, const Tensor& a) { return unary(out, "logical_not", a); }

Tensor convert(Body& out, const Tensor& x, Element element) {
  if (x.element == element) return x;
  return out.add("cast", {{"x", x}, {"dtype", Immediate(form_of(element).word)}}, element, x.shape);
}

/// One size that is open follows from the number of elements.
Tensor reshape(Body& out, const Tensor& x, const Dims& shape) {
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
  Dims wanted = shape;
  if (std::ranges::count_if(shape, is_open) == 1) *std::ranges::find_if(wanted, is_open) = -1;
  return out.add("reshape", {{"x", x}, {"shape", sizes(out, wanted)}}, x.element, shape);
}

Tensor transpose(Body& out, const Tensor& x, const Sizes& perm) {
  if (std::ranges::is_sorted(perm)) return x;
  Dims shape;
  for (const std::int64_t axis : perm) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  return out.add("transpose", {{"x", x}, {"perm", Immediate(perm)}}, x.element, shape);
}

Sizes inverse(const Sizes& perm) {
  Sizes back(perm.size());
  for (std::size_t d = 0; d < perm.size(); ++d) back[static_cast<std::size_t>(perm[d])] = static_cast<std::int64_t>(d);
  return back;
}

/// Other axes are whole, by masks.
Tensor cut(Body& out, const Tensor& x, std::size_t axis, const Dim& begin, const Dim& end, std::int64_t stride) {
  const bool to_end = end == x.shape[axis];
  if (begin == 0 && to_end && stride == 1) return x;
  Dims from(x.shape.size(), 0), to = from, shape = x.shape;
  if (is_open(begin) && (end - begin).is_static() && stride == 1) {  // whose size CoreML would not know
    Dims lengths(x.shape.size(), -1);
    from[axis] = begin, lengths[axis] = shape[axis] = end - begin;
    return out.add("slice_by_size", {{"x", x}, {"begin", sizes(out, from)}, {"size", sizes(out, lengths)}}, x.element, shape);
  }
  Sizes steps(x.shape.size(), 1);
  from[axis] = begin, to[axis] = to_end ? Dim(0) : end, steps[axis] = stride;
  shape[axis] = stride == 1 ? end - begin : Dim(((end - begin).value() + stride - 1) / stride);
  std::vector<bool> from_first(x.shape.size(), true), to_last = from_first;
  from_first[axis] = false, to_last[axis] = to_end;
  return out.add("slice_by_index",
                 {{"x", x},
                  {"begin", sizes(out, from)},
                  {"end", sizes(out, to)},
                  {"stride", Immediate(steps)},
                  {"begin_mask", Immediate(from_first)},
                  {"end_mask", Immediate(to_last)}},
                 x.element, shape);
}

Tensor concat(Body& out, const Tensors& parts, std::int64_t axis) {
  Tensors some;  // parts without elements are no tensors of CoreML
  Dims shape = parts[0].shape;
  Dim& all = shape[static_cast<std::size_t>(axis)] = 0;
  for (const Tensor& part : parts) {
    const Dim& along = part.shape[static_cast<std::size_t>(axis)];
    all += along;
    if (!(along == 0)) some.push_back(part);
  }
  if (some.size() == 1) return some[0];
  return out.add("concat", {{"values", some}, {"axis", Immediate(static_cast<int>(axis))}, {"interleave", Immediate(false)}},
                 parts[0].element, shape);
}

Tensor reversed(Body& out, const Tensor& x, const Sizes& axes) {
  return axes.empty() ? x : out.add("reverse", {{"x", x}, {"axes", Immediate(axes)}}, x.element, x.shape);
}

Tensor filled(Body& out, Element element, const Dims& shape, double value) {
  if (shape.empty()) return out.constant(array_of(element, value));
  return out.add("fill", {{"shape", sizes(out, shape)}, {"value", Immediate(element, value)}}, element, shape);
}

Tensor take(Body& out, const Tensor& x, const Tensor& places, std::int64_t axis) {
  Dims shape(x.shape.begin(), x.shape.begin() + axis);
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

Tensor put(Body& out, const Tensor& x, const Tensor& places, const Tensor& updates, const char* mode) {
  return out.add("scatter",
                 {{"data", x},
                  {"indices", places},
                  {"updates", updates},
                  {"axis", Immediate(0)},
                  {"mode", Immediate(mode)},
                  {"validate_indices", Immediate(false)}},
                 x.element, x.shape);
}

Tensor reduced(Body& out, const std::string& kind, const Tensor& x, const Sizes& axes) {
  Dims shape;
  for (std::int64_t d = 0; d < x.rank(); ++d)
    if (std::ranges::find(axes, d) == axes.end()) shape.push_back(x.shape[static_cast<std::size_t>(d)]);
  return out.add("reduce_" + kind, {{"x", x}, {"axes", Immediate(axes)}, {"keep_dims", Immediate(false)}}, x.element, shape);
}

Tensor matmul(Body& out, const Tensor& x, const Tensor& y, bool transpose_x, bool transpose_y) {
  Dims shape = x.shape;
  const std::size_t last = shape.size() - 1;
  shape[last - 1] = x.shape[transpose_x ? last : last - 1], shape[last] = y.shape[transpose_y ? last - 1 : last];
  return out.add("matmul", {{"x", x}, {"y", y}, {"transpose_x", Immediate(transpose_x)}, {"transpose_y", Immediate(transpose_y)}},
                 x.element, shape);
}

Tensor stretched(Body& out, const Tensor& x, const Dims& shape) {
  if (x.shape == shape) return x;
  if (x.shape.size() < shape.size()) {
    Dims aligned(shape.size() - x.shape.size(), 1);
    aligned.insert(aligned.end(), x.shape.begin(), x.shape.end());
    return stretched(out, reshape(out, x, aligned), shape);
  }
  if (x.element == Element::boolean) return convert(out, stretched(out, convert(out, x, Element::i32), shape), Element::boolean);
  Dims times(shape.size(), 1);
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!(x.shape[d] == shape[d])) times[d] = shape[d];
  return out.add("tile", {{"x", x}, {"reps", sizes(out, times)}}, x.element, shape);
}

Tensor spread(Body& out, const Tensor& x, std::size_t axis, std::int64_t between, double value) {
  const Dim& n = x.shape[axis];
  if (between == 0 || n == 1 || n == 0) return x;
  const auto at = x.shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const Dim outer = product({x.shape.begin(), at}), inner = product({at + 1, x.shape.end()});
  const Tensor flat = reshape(out, x, {outer, n, inner});
  const Tensor all = concat(out, {flat, filled(out, x.element, {outer, n, inner * between}, value)}, 2);
  Dims shape = x.shape;
  shape[axis] = n * (between + 1);
  return cut(out, reshape(out, all, shape), axis, 0, shape[axis] - between);
}

Tensor padded(Body& out, const Tensor& x, std::size_t axis, const Dim& lo, const Dim& hi, double value) {
  const Dim& all = x.shape[axis];
  const Dim from = lesser(all, larger(0, -lo)), to = larger(from, all - larger(0, -hi));
  const Dim total = all + lo + hi, before = lesser(total, larger(0, lo)), behind = total - before - (to - from);
  Tensors parts;
  if (!(before == 0)) parts.push_back(fill_along(out, x, axis, before, value));
  if (!(to == from)) parts.push_back(cut(out, x, axis, from, to));
  if (!(behind == 0)) parts.push_back(fill_along(out, x, axis, behind, value));
  return parts.size() == 1 ? parts[0] : concat(out, parts, static_cast<std::int64_t>(axis));
}

Tensors bytes_of(Body& out, const Tensor& x, int bits) {
  Tensors bytes;
  for (int low = 0; low < bits; low += 8) {
    const Tensor moved = low == 0 ? x : binary(out, "floor_div", x, number(x, std::ldexp(1, low)));
    bytes.push_back(binary(out, "mod", moved, number(moved, 256)));
  }
  return bytes;
}

Tensor integer_of(Body& out, const Tensors& bytes) {
  Tensor sum = bytes.back();
  if (bytes.size() == 4) {
    const Tensor negative = compare(out, "greater", sum, number(sum, 127));
    sum = select(out, negative, binary(out, "sub", sum, number(sum, 256)), sum);
  }
  for (std::size_t i = bytes.size() - 1; i-- > 0;) sum = binary(out, "add", binary(out, "mul", sum, number(sum, 256)), bytes[i]);
  return sum;
}

Tensor wrapped(Body& out, const Tensor& x, DType dtype) {
  if (!is_integer(dtype) || info(dtype).bits == 32) return x;
  const double range = static_cast<double>(std::int64_t{1} << info(dtype).bits), half = is_signed_int(dtype) ? range / 2 : 0;
  Tensor y = half > 0 ? binary(out, "add", x, number(x, half)) : x;
  y = binary(out, "mod", y, number(y, range));
  return half > 0 ? binary(out, "sub", y, number(y, half)) : y;
}

}  // namespace rlx::coreml
