// Reads and writes at places that are computed. MLX touches foreign memory where one is outside: every place is clamped.
#include <algorithm>

#include "backends/mlx/library/call.h"

namespace rlx::mlx {
namespace {

bool contains(const std::vector<int>& list, int value) { return std::ranges::find(list, value) != list.end(); }

/// The starts of a window, one operand for each axis from `first` on.
mx::array window_start(const Call& c, std::size_t first, const mx::Shape& window) {
  std::vector<mx::array> starts;
  for (std::size_t d = 0; d < window.size(); ++d) {
    const mx::array start = mx::reshape(c.x[first + d], {1});
    starts.push_back(clamped(start, c.x[0].shape(static_cast<int>(d)) - window[d]));
  }
  return mx::concatenate(std::move(starts), 0);
}

std::vector<int> all_axes(std::size_t rank) {
  std::vector<int> axes;
  for (std::size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int>(d));
  return axes;
}

Results dynamic_slice(const Call& c) {
  const mx::Shape window = c.shape();
  if (window.empty()) return c.x[0];
  return mx::slice(c.x[0], window_start(c, 1, window), all_axes(window.size()), window);
}

Results dynamic_update(const Call& c) {
  const mx::Shape& window = c.x[1].shape();
  if (window.empty()) return c.x[1];
  if (c.x[1].size() == 0) return c.x[0];
  return mx::slice_update(c.x[0], c.x[1], window_start(c, 2, window), all_axes(window.size()));
}

/// JAX's dimension numbers as MLX has them: an array of places for each axis that is indexed.
struct Windows {
  explicit Windows(const Call& c, std::vector<int> result_window_axes)
      : start_map(c.ints("start_index_map")),
        operand_batch(c.ints("operand_batching_dims")),
        index_batch(c.ints("start_indices_batching_dims")),
        window_axes(std::move(result_window_axes)),
        collapsed(c.ints("collapsed_slice_dims")),
        x(c.x[0]),
        indices(c.x[1]) {
    batch = {indices.shape().begin(), indices.shape().end() - 1};
  }

  /// Which axes of the operand a window spans.
  bool spans(int axis) const { return !contains(collapsed, axis) && !contains(operand_batch, axis); }
  /// `moved`: dropped windows are moved there along the first indexed axis.
  void find_places(const mx::Shape& window, bool fill) {
    for (std::size_t k = 0; k < start_map.size(); ++k) {
      const mx::array raw = signed_places(mx::take(indices, static_cast<int>(k), static_cast<int>(batch.size())));
      const int axis = start_map[k], last = x.shape(axis) - window[static_cast<std::size_t>(axis)];
      const mx::array place = clamped(raw, last);
      if (fill) {
        const mx::array is_inside = mx::equal(raw, as(place, mx::int64));
        inside = inside ? mx::logical_and(*inside, is_inside) : is_inside;
      }
      places.push_back(place), axes.push_back(axis);
    }
    for (std::size_t k = 0; k < operand_batch.size(); ++k) {
      const int size = x.shape(operand_batch[k]);
      mx::Shape line(batch.size(), 1);
      line[static_cast<std::size_t>(index_batch[k])] = size;
      places.push_back(mx::broadcast_to(mx::reshape(mx::arange(0, size), line), batch)), axes.push_back(operand_batch[k]);
    }
  }

  std::vector<int> start_map, operand_batch, index_batch, window_axes, collapsed;
  const mx::array &x, &indices;
  mx::Shape batch;
  std::vector<mx::array> places;
  std::vector<int> axes;
  std::optional<mx::array> inside;
};

/// By axis of a result or of updates: its place behind (windows..., axes of a window...).
std::vector<int> windows_first(int rank, const std::vector<int>& window_axes) {
  std::vector<int> order;
  for (int d = 0; d < rank; ++d)
    if (!contains(window_axes, d)) order.push_back(d);
  order.insert(order.end(), window_axes.begin(), window_axes.end());
  return order;
}

Results gather(const Call& c) {
  Windows w(c, c.ints("offset_dims"));
  const std::vector<int> sizes = c.ints("slice_sizes");
  const mx::Shape window(sizes.begin(), sizes.end());
  const bool fill = c.word("mode") == "fill";
  w.find_places(window, fill);
  mx::Shape spanned = w.batch;
  for (std::size_t d = 0; d < window.size(); ++d)
    if (w.spans(static_cast<int>(d))) spanned.push_back(window[d]);
  mx::array y = w.places.empty() ? mx::slice(w.x, mx::Shape(window.size(), 0), window) : mx::gather(w.x, w.places, w.axes, window);
  if (w.places.empty()) {
    mx::Shape one(w.batch.size(), 1);
    one.insert(one.end(), spanned.begin() + static_cast<std::ptrdiff_t>(w.batch.size()), spanned.end());
    y = mx::broadcast_to(mx::reshape(y, one), spanned);
  }
  y = mx::reshape(y, spanned);
  if (w.inside) {
    mx::Shape mask = w.batch;
    mask.resize(spanned.size(), 1);
    y = mx::where(mx::reshape(*w.inside, mask), y, number_like(c.attr<double>("fill_value"), y));
  }
  return mx::transpose(y, inverse(windows_first(static_cast<int>(spanned.size()), w.window_axes)));
}

using ScatterFunction = mx::array (*)(const mx::array&, const std::vector<mx::array>&, const mx::array&, const std::vector<int>&,
                                      mx::StreamOrDevice);

ScatterFunction function_of(std::string_view kind) {
  if (kind == "add") return mx::scatter_add;
  if (kind == "mul") return mx::scatter_prod;
  if (kind == "min") return mx::scatter_min;
  if (kind == "max") return mx::scatter_max;
  return mx::scatter;
}

/// Windows that are dropped go to rows behind the operand, which are cut off again.
Results scatter(const Call& c) {
  Windows w(c, c.ints("offset_dims"));
  const mx::array updates = mx::transpose(c.x[2], windows_first(static_cast<int>(c.x[2].ndim()), w.window_axes));
  if (updates.size() == 0) return c.x[0];
  mx::Shape window(w.x.ndim(), 1);
  std::size_t next = w.batch.size();
  for (std::size_t d = 0; d < window.size(); ++d)
    if (w.spans(static_cast<int>(d))) window[d] = updates.shape(static_cast<int>(next++));
  w.find_places(window, c.word("mode") == "fill");
  mx::Shape apart = w.batch;
  apart.insert(apart.end(), window.begin(), window.end());
  mx::array x = wide(w.x), values = wide(mx::reshape(updates, apart));
  if (x.dtype() == mx::bool_) x = as(x, mx::uint8), values = as(values, mx::uint8);
  const ScatterFunction put = function_of(c.word("op"));
  if (w.places.empty()) w.places.push_back(mx::zeros(w.batch, mx::int32)), w.axes.push_back(0);
  if (w.inside) {
    const auto d = static_cast<std::size_t>(w.axes[0]);
    mx::Shape behind = x.shape();
    behind[d] = window[d];
    w.places[0] = mx::where(*w.inside, w.places[0], mx::array(w.x.shape(w.axes[0]), mx::int32));
    x = mx::concatenate({x, mx::zeros(behind, x.dtype())}, w.axes[0]);
  }
  mx::array y = put(x, w.places, values, w.axes, {});
  if (w.inside) y = mx::slice(y, mx::Shape(y.ndim(), 0), w.x.shape());
  return as(y, w.x.dtype());
}

bool has_axes(const Graph& graph, const Node& node) { return graph.type(node.operands[0]).rank() > 0; }

Results place(const Call& c) {
  const mx::Shape shape = c.shape();
  const mx::array everywhere = mx::full(shape, number_like(c.attr<double>("fill"), c.x[0]), c.x[0].dtype());
  if (c.x[0].size() == 0 || everywhere.size() == 0) return everywhere;
  return mx::put_along_axis(everywhere, clamped(c.x[1], shape.back() - 1), c.x[0], -1);
}

}  // namespace

Rows addressing_rows() {
  static constexpr Row<Rule> rows[] = {
      {"dynamic_slice", dynamic_slice},
      {"dynamic_update", dynamic_update},
      {"gather", gather},
      {"place", place},
      {"scatter", scatter, has_axes, "MLX scatters into axes"},
  };
  return rows;
}

}  // namespace rlx::mlx
