#include "text/tokenizer/word_models/vocabulary.h"

#include <algorithm>

#include "base/names.h"

namespace rlx {

void Vocabulary::read(const JsonField& field) {
  if (!field.value().is_object()) field.refuse("expected an object of tokens and ids, found a value of type {}", field.value().type_name());
  for (const auto& [token, value] : field.value().items()) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT32_MAX) {
      field.refuse("token {}: expected an id in 0..{}, found {}", quote_name(token), INT32_MAX,
                   value.is_number() ? value.dump() : value.type_name());
    }
    add(token, value.get<std::int32_t>());
  }
  const auto twice = finish();
  if (!twice) return;
  std::vector<std::string> holders;
  for (const Entry& entry : entries_) {
    if (entry.id == *twice) holders.push_back(quote_name(text_at(entry)));
  }
  field.refuse("tokens {} and {} both have the id {}", holders[0], holders[1], *twice);
}

bool Vocabulary::add(std::string_view token, std::int32_t id) {
  if (find(token) != none) return false;
  if (token.size() > UINT32_MAX || entries_.size() >= INT32_MAX) fail("tokenizer: the vocabulary is too large");
  entries_.push_back({text_.size(), static_cast<std::uint32_t>(token.size()), id});
  text_ += token;
  if (token.size() >= lengths_.size()) lengths_.resize(token.size() + 1);
  lengths_[token.size()] = true;
  if (entries_.size() * 2 > slots_.size()) {
    grow();
    return true;
  }
  const std::uint64_t hash = hash_bytes(token);
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot].entry != UINT32_MAX) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(entries_.size() - 1)};
  return true;
}

void Vocabulary::grow() {
  slots_.assign(std::max<std::size_t>(64, slots_.size() * 2), {});
  for (std::size_t entry = 0; entry < entries_.size(); ++entry) {
    const std::uint64_t hash = hash_bytes(text_at(entries_[entry]));
    std::size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot].entry != UINT32_MAX) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(entry)};
  }
}

std::size_t Vocabulary::find(std::string_view token, std::uint64_t hash) const {
  if (slots_.empty()) return none;
  for (std::size_t slot = hash & (slots_.size() - 1); slots_[slot].entry != UINT32_MAX; slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot].hash == static_cast<std::uint32_t>(hash >> 32) && text_at(entries_[slots_[slot].entry]) == token) {
      return slots_[slot].entry;
    }
  }
  return none;
}

std::optional<std::int32_t> Vocabulary::finish() {
  by_id_.clear();
  by_id_.reserve(entries_.size());
  for (std::size_t entry = 0; entry < entries_.size(); ++entry) by_id_.emplace_back(entries_[entry].id, static_cast<std::uint32_t>(entry));
  std::sort(by_id_.begin(), by_id_.end());
  const auto twice = std::adjacent_find(by_id_.begin(), by_id_.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice == by_id_.end()) return std::nullopt;
  return twice->first;
}

std::optional<std::string_view> Vocabulary::token(std::int32_t id) const {
  const auto dense = static_cast<std::size_t>(id);
  if (id >= 0 && dense < by_id_.size() && by_id_[dense].first == id) return text_at(entries_[by_id_[dense].second]);
  const auto found = std::lower_bound(by_id_.begin(), by_id_.end(), std::pair{id, std::uint32_t{0}});
  if (found == by_id_.end() || found->first != id) return std::nullopt;
  return text_at(entries_[found->second]);
}

}  // namespace rlx
