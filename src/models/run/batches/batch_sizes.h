#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace rlx {

/// What a run takes, in tokens: those that run, padding included, or else the products meanwhile of weights that come from memory; and its
/// launches. Of 14 to 112 tokens of MiniLM (`bench/sentence_model --lengths`, two threads) what comes beside them is 4 in f32, 2 in bf16.
constexpr std::size_t cost_of_run(std::size_t tokens) { return std::max<std::size_t>(tokens, 16) + 4; }

/// So many texts in as few groups of at most `most` as can be, of even sizes.
std::vector<std::size_t> even_sizes(std::size_t texts, std::size_t most);

/// Texts that run together, padded to the longest of them: sizes of consecutive groups of `lengths` (numbers of tokens, longest first),
/// each of at most `most` texts, so that the sum of cost_of_run is least.
std::vector<std::size_t> batch_sizes(std::span<const std::size_t> lengths, std::size_t most);

}  // namespace rlx
