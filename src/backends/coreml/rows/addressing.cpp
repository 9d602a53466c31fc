// Reads and writes at places that are computed: as places in the operand's elements one behind the other, all of them inside.
#include <algorithm>

#include "backends/coreml/blocks.h"
#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

bool contains(const Sizes& list, std::int64_t value) { return std::ranges::find(list, value) != list.end(); }

Dims strides_of(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

Tensor scaled(Body& out, const Tensor& x, const Dim& factor) { return factor == 1 ? x : binary(out, "mul", x, size(out, factor)); }

/// For each place of a shape: the sum over its axes of the place along that axis times the axis's stride.
Tensor places_of(Body& out, const Dims& shape, const Dims& strides) {
  Tensor places = reshape(out, out.constant({1}, {0}), Dims(shape.size(), 1));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1 || strides[d] == 0) continue;
    Dims along(shape.size(), 1);
    along[d] = shape[d];
    places = binary(out, "add", places, reshape(out, scaled(out, line(out, shape[d]), strides[d]), along));
  }
  return stretched(out, places, shape);
}

Tensor clamped(Body& out, const Tensor& places, const Dim& last) { return clamped(out, places, number(places, 0), size(out, last)); }

/// The elements in one row.
Tensor row_of(Body& out, const Tensor& x) { return reshape(out, x, {product(x.shape)}); }

/// Where a window begins, of which the start along each axis is a scalar, moved so that it lies inside: [axes].
Tensor window_begin(const Call& c, std::size_t first, const Dims& window) {
  const Dims& shape = c.x[0].shape;
  Tensors begin;
  for (std::size_t d = 0; d < window.size(); ++d)
    begin.push_back(window[d] == shape[d] ? c.out.constant({1}, {0})
                                          : reshape(c.out, clamped(c.out, c.x[first + d], shape[d] - window[d]), {1}));
  return concat(c.out, begin, 0);
}

Tensors dynamic_slice(const Call& c) {
  const Dims& window = c.shape();
  if (window.empty()) return {c.x[0]};
  const Tensor &x = c.x[0], begin = window_begin(c, 1, window);
  return {c.out.add("slice_by_size", {{"x", x}, {"begin", begin}, {"size", sizes(c.out, window)}}, x.element, window)};
}

/// Before iOS 18 the elements are scattered.
Tensors dynamic_update(const Call& c) {
  const Dims& window = c.x[1].shape;
  if (window.empty()) return {c.x[1]};
  const Tensor begin = window_begin(c, 2, window);
  if (c.out.parts().target >= Target::ios18) {
    const Tensor &x = c.x[0], end = binary(c.out, "add", begin, sizes(c.out, window));
    return {c.out.add("slice_update", {{"x", x}, {"update", c.x[1]}, {"begin", begin}, {"end", end}}, x.element, x.shape)};
  }
  const Dims strides = strides_of(c.x[0].shape);
  const Tensor moves = binary(c.out, "mul", begin, sizes(c.out, strides));
  const Tensor first = reshape(c.out, reduced(c.out, "sum", moves, {0}), {1});
  const Tensor places = binary(c.out, "add", first, row_of(c.out, places_of(c.out, window, strides)));
  const Tensor y = put(c.out, row_of(c.out, c.x[0]), places, row_of(c.out, c.x[1]), "update");
  return {reshape(c.out, y, c.x[0].shape)};
}

/// JAX's dimension numbers as places: [windows, elements of one].
struct Windows {
  Windows(const Call& c, const Dims& window, bool fill) {
    const Dims &shape = c.x[0].shape, strides = strides_of(shape);
    const Sizes map = c.numbers("start_index_map");
    const Tensor& indices = c.x[1];
    batch = {indices.shape.begin(), indices.shape.end() - 1};
    count = product(batch);
    Tensor start = reshape(c.out, batched_begins(c, strides), {count});
    const auto numbers = static_cast<std::int64_t>(map.size());
    const Tensor rows = numbers > 0 ? reshape(c.out, indices, {count, numbers}) : indices;
    for (std::size_t k = 0; k < map.size(); ++k) {
      const auto axis = static_cast<std::size_t>(map[k]), at = k;
      const Tensor raw = reshape(c.out, cut(c.out, rows, 1, static_cast<std::int64_t>(at), static_cast<std::int64_t>(at) + 1), {count});
      const Tensor place = clamped(c.out, raw, shape[axis] - window[axis]);
      if (fill) {
        const Tensor is_inside = compare(c.out, "equal", raw, place);
        inside = inside ? compare(c.out, "logical_and", *inside, is_inside) : is_inside;
      }
      start = binary(c.out, "add", start, scaled(c.out, place, strides[axis]));
    }
    elements = product(window);
    places = binary(c.out, "add", reshape(c.out, start, {count, 1}), reshape(c.out, places_of(c.out, window, strides), {1, elements}));
  }

  /// Where the windows begin along the axes that operand and indices have in common.
  Tensor batched_begins(const Call& c, const Dims& strides) const {
    const Sizes operand = c.numbers("operand_batching_dims"), index = c.numbers("start_indices_batching_dims");
    Dims of_batch(batch.size(), 0);
    for (std::size_t k = 0; k < operand.size(); ++k)
      of_batch[static_cast<std::size_t>(index[k])] = strides[static_cast<std::size_t>(operand[k])];
    return places_of(c.out, batch, of_batch);
  }

  Dims batch;
  Dim count = 1, elements = 1;
  std::optional<Tensor> inside;  // [windows]
  Tensor places;
};

/// The axes of the operand that windows span, in order.
Sizes spanned_axes(const Call& c) {
  const Sizes collapsed = c.numbers("collapsed_slice_dims"), batching = c.numbers("operand_batching_dims");
  Sizes spanned;
  for (std::int64_t d = 0; d < c.x[0].rank(); ++d)
    if (!contains(collapsed, d) && !contains(batching, d)) spanned.push_back(d);
  return spanned;
}

/// By axis of a result or of updates: its place behind (windows..., axes of a window...).
Sizes windows_first(std::int64_t rank, const Sizes& window_axes) {
  Sizes order;
  for (std::int64_t d = 0; d < rank; ++d)
    if (!contains(window_axes, d)) order.push_back(d);
  order.insert(order.end(), window_axes.begin(), window_axes.end());
  return order;
}

/// Whether rows of the operand are read whole, as embeddings are.
bool reads_rows(const Call& c, const Dims& window) {
  return c.numbers("start_index_map") == Sizes{0} && c.numbers("collapsed_slice_dims") == Sizes{0} &&
         c.numbers("operand_batching_dims").empty() && std::equal(window.begin() + 1, window.end(), c.x[0].shape.begin() + 1);
}

/// The operand, where it is a weight in blocks.
std::optional<DecodedBlocks> blocks_of(const Call& c) {
  const Weight* const weight = c.weight(0);
  if (!weight || weight->blocks.empty()) return std::nullopt;
  return decode_on_device(c.out, *weight);
}

/// Rows of such: those of its codes, less those of its minima.
Tensor rows_of_blocks(const Call& c, DecodedBlocks table, const Tensor& rows) {
  table.scaled = take(c.out, table.scaled, rows, 0);
  if (table.minima) table.minima = take(c.out, *table.minima, rows, 0);
  return whole(c.out, table);
}

Tensors gather(const Call& c) {
  const Dims& window = c.dims("slice_sizes");
  const Windows w(c, window, c.word("mode") == "fill");
  Dims shape = w.batch;
  for (const std::int64_t d : spanned_axes(c)) shape.push_back(window[static_cast<std::size_t>(d)]);
  const std::optional<DecodedBlocks> blocks = blocks_of(c);
  Tensor y;
  if (reads_rows(c, window)) {
    const Tensor rows = clamped(c.out, reshape(c.out, c.x[1], {w.count}), c.x[0].shape[0] - 1);
    const Tensor x = blocks ? rows_of_blocks(c, *blocks, rows) : take(c.out, c.x[0], rows, 0);
    y = reshape(c.out, x, {w.count, w.elements});
  } else {
    y = take(c.out, row_of(c.out, blocks ? whole(c.out, *blocks) : c.x[0]), w.places, 0);
  }
  if (w.inside) y = select(c.out, reshape(c.out, *w.inside, {w.count, 1}), y, number(y, c.attr<double>("fill_value")));
  const Sizes order = windows_first(static_cast<std::int64_t>(shape.size()), c.numbers("offset_dims"));
  return {transpose(c.out, reshape(c.out, y, shape), inverse(order))};
}

/// Windows that are dropped go to an element behind the operand, which is cut off again.
Tensors scatter(const Call& c) {
  const Dims& shape = c.x[0].shape;
  const Dim all = product(shape);
  Dims window(shape.size(), 1);
  std::size_t next = 0;
  const Sizes offset_dims = c.numbers("offset_dims");
  for (const std::int64_t d : spanned_axes(c))
    window[static_cast<std::size_t>(d)] = c.x[2].shape[static_cast<std::size_t>(offset_dims[next++])];
  const Windows w(c, window, c.word("mode") == "fill");
  Tensor places = w.places;
  if (w.inside) places = select(c.out, reshape(c.out, *w.inside, {w.count, 1}), places, size(c.out, all));
  const Tensor updates = transpose(c.out, c.x[2], windows_first(c.x[2].rank(), offset_dims));
  const Tensor x = row_of(c.out, c.x[0]);
  const Tensor room = concat(c.out, {x, filled(c.out, x.element, {1}, 0)}, 0);
  const std::string_view kind = c.word("op");
  const std::string mode(kind == "set" ? "update" : kind);
  const Tensor y =
      put(c.out, room, reshape(c.out, places, {w.count * w.elements}), reshape(c.out, updates, {w.count * w.elements}), mode.c_str());
  return {wrapped(c.out, reshape(c.out, cut(c.out, y, 0, 0, all), shape), c.result_type())};
}

/// The lines of the result lie one behind the other.
Tensors place(const Call& c) {
  const Dims& shape = c.shape();
  const Dim &width = shape.back(), &length = c.x[0].shape.back();
  const Dim lines = product({shape.begin(), shape.end() - 1});
  const Tensor to = reshape(c.out, c.x[1], {lines, length});
  const Tensor places = binary(c.out, "add", clamped(c.out, to, width - 1), places_of(c.out, {lines, 1}, {width, 0}));
  const Tensor x = row_of(c.out, c.x[0]), everywhere = filled(c.out, x.element, {lines * width}, c.attr<double>("fill"));
  const Tensor y = put(c.out, everywhere, reshape(c.out, places, {lines * length}), x, "update");
  return {reshape(c.out, y, shape)};
}

}  // namespace

Rows addressing_rows() {
  static constexpr Row<Rule> rows[] = {
      {"gather", gather}, {"scatter", scatter}, {"dynamic_slice", dynamic_slice}, {"dynamic_update", dynamic_update}, {"place", place}};
  return rows;
}

}  // namespace rlx::coreml
