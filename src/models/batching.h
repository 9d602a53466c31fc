#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace rlx {

/// Texts that run together, padded to the longest of them: sizes of consecutive groups of `lengths` (numbers of tokens, longest first),
/// each of at most `most` texts, so that the time is least. A run takes as long as its tokens, padding included, and some more.
std::vector<std::size_t> batch_sizes(std::span<const std::size_t> lengths, std::size_t most);

}  // namespace rlx
