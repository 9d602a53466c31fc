#include "backends/mlx/library/call.h"

#include <algorithm>

namespace rlx::mlx {

std::vector<int> Call::ints(std::string_view name) const {
  std::vector<int> list;
  for (const std::int64_t value : numbers(name)) list.push_back(static_cast<int>(value));
  return list;
}

mx::array complex_of(const mx::array& re, const mx::array& im) {
  return mx::reshape(mx::view(mx::contiguous(mx::stack({re, im}, -1)), mx::complex64), re.shape());
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

mx::array signed_places(const mx::array& places) {
  if (places.dtype() != mx::uint64) return as(places, mx::int64);
  const mx::array most(std::uint64_t{1} << 62, mx::uint64);
  return as(mx::minimum(places, most), mx::int64);
}

std::vector<int> inverse(const std::vector<int>& perm) {
  std::vector<int> back(perm.size());
  for (std::size_t d = 0; d < perm.size(); ++d) back[static_cast<std::size_t>(perm[d])] = static_cast<int>(d);
  return back;
}

mx::array clamped(const mx::array& places, int last) {
  return as(mx::clip(signed_places(places), mx::array(0, mx::int64), mx::array(last, mx::int64)), mx::int32);
}

const RowTable<Rule>& table() {
  static const RowTable<Rule> all = [] {
    RowTable<Rule> table;
    for (const Rows rows : {scalar_rows(), structure_rows(), addressing_rows(), reduction_rows(), contraction_rows(), control_rows(),
                            signal_rows(), composite_rows(), quantized_rows(), recurrent_rows()})
      table.add(rows);
    return table;
  }();
  return all;
}

}  // namespace rlx::mlx
