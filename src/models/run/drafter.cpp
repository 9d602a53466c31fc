#include "models/run/drafter.h"

#include <algorithm>

namespace rlx {

std::vector<std::int32_t> PromptLookup::guess(std::span<const std::int32_t> ids, std::size_t most) {
  constexpr std::size_t longest = 4, shortest = 2;  // one token alone occurs too often to say what follows
  for (std::size_t length = std::min(longest, ids.size() - std::min<std::size_t>(ids.size(), 1)); length >= shortest; --length) {
    const auto last = ids.last(length), before = ids.first(ids.size() - 1);
    const auto found = std::find_end(before.begin(), before.end(), last.begin(), last.end());
    if (found == before.end()) continue;
    const auto next = ids.subspan(static_cast<std::size_t>(found - before.begin()) + length);
    const auto guessed = next.first(std::min(most, next.size()));
    return {guessed.begin(), guessed.end()};
  }
  return {};
}

DraftModel::DraftModel(CachedDecoder& decoder, std::int64_t vocabulary, std::function<bool()> cancelled)
    : decoder_(decoder), vocabulary_(std::min(vocabulary, decoder.config().vocab_size)), cancelled_(std::move(cancelled)) {}

std::vector<std::int32_t> DraftModel::guess(std::span<const std::int32_t> ids, std::size_t most) {
  const auto is_known = [&](std::int32_t id) { return id < vocabulary_; };
  if (most == 0 || static_cast<std::int64_t>(ids.size() + most) > decoder_.context() || !std::all_of(ids.begin(), ids.end(), is_known))
    return {};
  const Array logits = decoder_.begin(ids, cancelled_);
  if (logits.size() == 0) return {};
  std::vector<std::int32_t> guessed;
  std::int32_t next = greedy_choice(logits.values<float>());
  decoder_.mark();
  while (is_known(next)) {
    guessed.push_back(next);
    if (guessed.size() == most) break;
    next = greedy_choice(decoder_.append(std::span(guessed).last(1)));
  }
  return guessed;
}

}  // namespace rlx
