#include "models/tokenizer/vocabulary.h"

#include "base/names.h"

namespace rlx {

void Vocabulary::read(const JsonField& field) {
  if (!field.value().is_object()) field.refuse("expected an object of tokens and ids, found a value of type {}", field.value().type_name());
  ids_.reserve(field.value().size());
  by_id_.reserve(field.value().size());
  for (const auto& [token, value] : field.value().items()) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT32_MAX) {
      field.refuse("token {}: expected an id in 0..{}, found {}", quote_name(token), INT32_MAX,
                   value.is_number() ? value.dump() : value.type_name());
    }
    const auto id = value.get<std::int32_t>();
    const std::string& stored = tokens_.emplace_back(token);
    const auto [holder, fresh] = by_id_.emplace(id, stored);
    if (!fresh) field.refuse("tokens {} and {} both have the id {}", quote_name(holder->second), quote_name(token), id);
    ids_.emplace(stored, id);
  }
}

std::optional<std::int32_t> Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string_view> Vocabulary::token(std::int32_t id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second;
}

}  // namespace rlx
