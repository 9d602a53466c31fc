#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "models/tokenizer/json_field.h"

namespace rlx {

/// Tokens and their ids, one to one. Ids need not be dense.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(const Vocabulary&) = delete;  // the maps point into `tokens_`
  Vocabulary& operator=(const Vocabulary&) = delete;

  /// Reads an object {token: id}; an Error if an id is no integer in [0, 2^31) or is given twice.
  void read(const JsonField& field);

  std::optional<std::int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(std::int32_t id) const;
  std::size_t size() const { return tokens_.size(); }
  const std::deque<std::string>& tokens() const { return tokens_; }

 private:
  std::deque<std::string> tokens_;  // does not move its strings when it grows
  std::unordered_map<std::string_view, std::int32_t> ids_;
  std::unordered_map<std::int32_t, std::string_view> by_id_;
};

}  // namespace rlx
