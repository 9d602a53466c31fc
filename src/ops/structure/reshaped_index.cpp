#include "ops/structure/reshaped_index.h"

#include <algorithm>

namespace rlx {

std::vector<Index> reshaped_index(const std::vector<Index>& at, const Dims& to, const Dims& from) {
  using At = std::vector<Index>;
  At result(from.size(), Index(0));
  const Dim one = 1;
  std::size_t i = 0, j = 0, i_end = to.size(), j_end = from.size();
  const auto last = [](const Dims& shape, std::size_t end) { return shape[end - 1]; };
  while (i_end > 0 || j_end > 0) {
    if (i_end > 0 && last(to, i_end) == one) --i_end;
    else if (j_end > 0 && last(from, j_end) == one) --j_end;
    else if (i_end > 0 && j_end > 0 && last(to, i_end) == last(from, j_end)) result[--j_end] = at[--i_end];
    else break;
  }
  while (i < i_end && j < j_end && to[i] == from[j]) result[j++] = at[i++];
  const auto part = [](const auto& all, std::size_t begin, std::size_t end) {
    return std::decay_t<decltype(all)>(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
  };
  const At rest = unflatten(flatten(part(at, i, i_end), part(to, i, i_end)), part(from, j, j_end));
  std::ranges::copy(rest, result.begin() + static_cast<std::ptrdiff_t>(j));
  return result;
}

}  // namespace rlx
