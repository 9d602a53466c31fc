#include "models/batching.h"

#include <algorithm>
#include <limits>

namespace rlx {
namespace {

/// What a run costs beside its tokens, in tokens: its launches, and weights that are read once more. `sentence_model --lengths` gives 6 of
/// MiniLM, whose weights stay in the cache; where they come from memory it is the products a core computes while it reads a number,
/// some 20.
constexpr std::size_t cost_of_run = 16;

}  // namespace

std::vector<std::size_t> batch_sizes(std::span<const std::size_t> lengths, std::size_t most) {
  const std::size_t count = lengths.size();
  // Of the texts from each on: the least cost, and the size of the first batch that gives it.
  std::vector<std::size_t> cost(count + 1, std::numeric_limits<std::size_t>::max()), first(count + 1, 0);
  cost[count] = 0;
  for (std::size_t begin = count; begin-- > 0;) {
    for (std::size_t size = 1; size <= std::min(most, count - begin); ++size) {
      if (lengths[begin] - lengths[begin + size - 1] > cost_of_run) break;  // a run of its own costs less than the padding of this text
      const std::size_t whole = cost_of_run + size * lengths[begin] + cost[begin + size];
      if (whole <= cost[begin]) cost[begin] = whole, first[begin] = size;
    }
  }
  std::vector<std::size_t> sizes;
  for (std::size_t begin = 0; begin < count; begin += sizes.back()) sizes.push_back(first[begin]);
  return sizes;
}

}  // namespace rlx
