#include "models/run/batches/batch_sizes.h"

#include <algorithm>
#include <limits>

namespace rlx {

std::vector<std::size_t> even_sizes(std::size_t texts, std::size_t most) {
  std::vector<std::size_t> sizes((texts + most - 1) / most);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = texts / sizes.size() + (i < texts % sizes.size() ? 1 : 0);
  return sizes;
}

std::vector<std::size_t> batch_sizes(std::span<const std::size_t> lengths, std::size_t most) {
  const std::size_t count = lengths.size();
  // Of the texts from each on: the least cost, and the size of the first batch that gives it.
  std::vector<std::size_t> cost(count + 1, std::numeric_limits<std::size_t>::max()), first(count + 1, 0);
  cost[count] = 0;
  for (std::size_t begin = count; begin-- > 0;) {
    for (std::size_t size = 1; size <= std::min(most, count - begin); ++size) {
      if (lengths[begin] > cost_of_run(lengths[begin + size - 1])) break;  // this text costs less in a run of its own than padded
      const std::size_t whole = cost_of_run(size * lengths[begin]) + cost[begin + size];
      if (whole <= cost[begin]) cost[begin] = whole, first[begin] = size;
    }
  }
  std::vector<std::size_t> sizes;
  for (std::size_t begin = 0; begin < count; begin += sizes.back()) sizes.push_back(first[begin]);
  return sizes;
}

}  // namespace rlx
