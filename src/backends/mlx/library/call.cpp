#include "backends/mlx/library/call.h"

#include <algorithm>

namespace rlx::mlx {

const Attr& Call::attribute(std::string_view name) const {
  const auto& fields = node.op->fields;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return node.attrs[i];
  fail_internal("mlx: {} has no attribute {}", node.op->name, name);
}

int Call::axis() const {
  const std::int64_t axis = number("axis");
  return static_cast<int>(axis < 0 ? axis + static_cast<std::int64_t>(x[0].ndim()) : axis);
}

std::vector<int> Call::ints(std::string_view name) const {
  const Attr& attr = attribute(name);
  std::vector<int> list;
  if (const auto* const dims = std::get_if<Dims>(&attr))
    for (const Dim& dim : *dims) list.push_back(static_cast<int>(dim.evaluate(bindings)));
  else
    for (const std::int64_t value : std::get<std::vector<std::int64_t>>(attr)) list.push_back(static_cast<int>(value));
  return list;
}

std::vector<std::int64_t> Call::sizes(std::size_t result) const {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : node.results[result].shape) sizes.push_back(dim.evaluate(bindings));
  return sizes;
}

mx::array number_like(double value, const mx::array& like) { return mx::array(value, like.dtype()); }

mx::array padded(const mx::array& x, std::span<const int> lo, std::span<const int> interior, const mx::Shape& shape, double value) {
  mx::Shape from, to, start, stop, step;
  for (std::size_t d = 0; d < lo.size(); ++d) {
    const int n = x.shape(static_cast<int>(d)), apart = interior[d] + 1;
    const int first = lo[d] < 0 ? (-lo[d] + apart - 1) / apart : 0, begin = lo[d] + first * apart;
    const int room = shape[d] - begin, count = std::min(n - first, room > 0 ? (room - 1) / apart + 1 : 0);
    if (count <= 0) return mx::full(shape, number_like(value, x), x.dtype());
    from.push_back(first), to.push_back(first + count);
    start.push_back(begin), stop.push_back(begin + (count - 1) * apart + 1), step.push_back(apart);
  }
  mx::array inside = mx::slice(x, from, to);
  if (inside.shape() == shape) return inside;
  return mx::slice_update(mx::full(shape, number_like(value, x), x.dtype()), inside, start, stop, step);
}

const RowTable<Rule>& table() {
  static const RowTable<Rule> all = [] {
    RowTable<Rule> table;
    for (const Rows rows : {scalar_rows(), structure_rows(), addressing_rows(), reduction_rows(), contraction_rows(), control_rows(),
                            signal_rows(), composite_rows(), quantized_rows()})
      table.add(rows);
    return table;
  }();
  return all;
}

}  // namespace rlx::mlx
