#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/flat_hash.h"
#include "formats/json/json_field.h"

namespace rlx {

/// Tokens and their ids, one to one. Ids need not be dense. Views of tokens live until the next `add`.
class Vocabulary {
 public:
  /// Adds the tokens of an object {token: id}; an Error if an id is no integer in [0, 2^31) or is given twice.
  void read(const JsonField& field);
  /// Adds a token; false, and nothing is added, if there is one of this name. The id must be new.
  bool add(std::string_view token, std::int32_t id);
  /// To be called after the last `add`, for `token` to work. The id that two tokens have, if there is one.
  std::optional<std::int32_t> finish();

  std::optional<std::int32_t> id(std::string_view token) const {
    const std::size_t entry = find(token);
    if (entry == none) return std::nullopt;
    return entries_[entry].id;
  }
  std::optional<std::string_view> token(std::int32_t id) const;
  std::size_t size() const { return entries_.size(); }
  /// The tokens by number, in the order in which they were added.
  std::string_view token_at(std::size_t entry) const { return text_at(entries_[entry]); }
  std::int32_t id_at(std::size_t entry) const { return entries_[entry].id; }

  static constexpr std::size_t none = SIZE_MAX;
  /// The number of a token, or `none`. Only lengths that tokens have are hashed: all cuts of one long token must not take a time that grows
  /// with the square of its length.
  std::size_t find(std::string_view token) const { return has_length(token.size()) ? find(token, hash_bytes(token)) : none; }
  std::size_t find(std::string_view token, std::uint64_t hash) const;

 private:
  struct Entry {
    std::size_t begin;
    std::uint32_t length;
    std::int32_t id;
  };
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t entry = UINT32_MAX;  // empty
  };

  std::string_view text_at(const Entry& entry) const { return std::string_view(text_).substr(entry.begin, entry.length); }
  void grow();
  bool has_length(std::size_t length) const { return length < lengths_.size() && lengths_[length]; }

  std::string text_;  // all tokens, one after the other
  std::vector<Entry> entries_;
  std::vector<bool> lengths_;                                  // whether there is a token of so many bytes
  std::vector<Slot> slots_;                                    // open addressing; a power of two, at most half full
  std::vector<std::pair<std::int32_t, std::uint32_t>> by_id_;  // id and entry, by id
};

}  // namespace rlx
