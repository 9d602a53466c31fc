#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer/word_models/word_model.h"

namespace rlx {

/// The tokens of words that were seen lately, 8192 of up to 62 bytes (1 MiB a thread), each at the place that its hash gives it. One serves
/// all models of a thread: nothing is shared, nothing locked, and a word that is not there is only tokenized again.
class WordCache {
 public:
  static WordCache& of_thread();
  /// A number that tells a model's words from those of all others.
  static std::uint32_t new_model();

  /// Appends the tokens of `word`, which starts at `offset` of a longer one. False if they are not known.
  bool find(std::uint32_t model, std::string_view word, std::uint64_t hash, std::size_t offset, std::vector<WordToken>& tokens) const {
    const Entry& entry = entries_[hash % entries_.size()];
    if (entry.model != model || std::string_view(entry.bytes.data(), entry.length) != word) return false;
    for (std::size_t i = 0; i < entry.count; ++i) tokens.push_back({entry.ids[i], offset + entry.begins[i], offset + entry.ends[i]});
    return true;
  }

  void keep(std::uint32_t model, std::string_view word, std::uint64_t hash, std::size_t offset, std::span<const WordToken> tokens);

 private:
  static constexpr std::size_t longest = 62, most_tokens = 10;
  struct Entry {
    std::uint32_t model = 0;  // none
    std::uint8_t length = 0, count = 0;
    std::array<std::uint8_t, most_tokens> begins, ends;
    std::array<std::int32_t, most_tokens> ids;
    std::array<char, longest> bytes;
  };

  std::vector<Entry> entries_ = std::vector<Entry>(8192);
};

}  // namespace rlx
