#include "text/tokenizer/word_models/word_cache.h"

#include <algorithm>
#include <atomic>

namespace rlx {

WordCache& WordCache::of_thread() {
  thread_local WordCache cache;
  return cache;
}

std::uint32_t WordCache::new_model() {
  static std::atomic<std::uint32_t> last = 0;
  return ++last;
}

void WordCache::keep(std::uint32_t model, std::string_view word, std::uint64_t hash, std::size_t offset,
                     std::span<const WordToken> tokens) {
  if (word.size() > longest || tokens.size() > most_tokens) return;
  Entry& entry = entries_[hash % entries_.size()];
  entry.model = model;
  entry.length = static_cast<std::uint8_t>(word.size());
  entry.count = static_cast<std::uint8_t>(tokens.size());
  std::copy(word.begin(), word.end(), entry.bytes.begin());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    entry.ids[i] = tokens[i].id;
    entry.begins[i] = static_cast<std::uint8_t>(tokens[i].begin - offset);
    entry.ends[i] = static_cast<std::uint8_t>(tokens[i].end - offset);
  }
}

}  // namespace rlx
