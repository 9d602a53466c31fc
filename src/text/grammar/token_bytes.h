#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::grammar {

/// A vocabulary's tokens in the order of their bytes, so that what they share at the front is walked once.
class TokenBytes {
 public:
  /// The bytes of each token by its id; empty for tokens that stand for no text, which no grammar allows. `ends` are the tokens that end a
  /// text. Throws Error for an id that the vocabulary lacks.
  TokenBytes(std::span<const std::string> bytes_by_id, std::span<const std::int32_t> ends);

  struct Entry {
    std::int32_t id;
    std::uint32_t begin, length;  // in the bytes of all
    std::uint32_t shared;         // bytes at the front that the entry before has too
  };

  std::span<const Entry> entries() const { return entries_; }
  std::string_view bytes(const Entry& entry) const { return std::string_view(bytes_).substr(entry.begin, entry.length); }
  /// Of a token by its id.
  std::string_view bytes_of(std::int32_t id) const;
  bool is_end(std::int32_t id) const;
  std::span<const std::int32_t> ends() const { return ends_; }
  std::size_t size() const { return place_.size(); }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> place_;  // by id, in entries_, or none
  std::vector<std::int32_t> ends_;
};

}  // namespace rlx::grammar
