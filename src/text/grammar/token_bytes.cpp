#include "text/grammar/token_bytes.h"

#include <algorithm>
#include <limits>

#include "rlx/error.h"

namespace rlx::grammar {

TokenBytes::TokenBytes(std::span<const std::string> bytes_by_id, std::span<const std::int32_t> ends)
    : place_(bytes_by_id.size(), none), ends_(ends.begin(), ends.end()) {
  std::size_t total = 0;
  for (const std::string& bytes : bytes_by_id) total += bytes.size();
  if (total > std::numeric_limits<std::uint32_t>::max() || bytes_by_id.size() > std::numeric_limits<std::int32_t>::max())
    fail("grammar: a vocabulary of {} tokens with {} bytes (at most 4 GiB are supported)", bytes_by_id.size(), total);
  for (std::int32_t id : ends_)
    if (id < 0 || static_cast<std::size_t>(id) >= place_.size())
      fail("grammar: end token {} is not in the vocabulary of {}", id, place_.size());
  bytes_.reserve(total);
  for (std::size_t id = 0; id < bytes_by_id.size(); ++id) {
    if (bytes_by_id[id].empty()) continue;
    entries_.push_back(
        {static_cast<std::int32_t>(id), static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(bytes_by_id[id].size()), 0});
    bytes_ += bytes_by_id[id];
  }
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) { return bytes(a) < bytes(b); });
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    place_[static_cast<std::size_t>(entries_[i].id)] = static_cast<std::uint32_t>(i);
    if (i == 0) continue;
    const std::string_view before = bytes(entries_[i - 1]), own = bytes(entries_[i]);
    const auto differs = std::mismatch(own.begin(), own.end(), before.begin(), before.end()).first;
    entries_[i].shared = static_cast<std::uint32_t>(differs - own.begin());
  }
}

std::string_view TokenBytes::bytes_of(std::int32_t id) const {
  const std::uint32_t place = place_[static_cast<std::size_t>(id)];
  return place == none ? std::string_view() : bytes(entries_[place]);
}

bool TokenBytes::is_end(std::int32_t id) const { return std::find(ends_.begin(), ends_.end(), id) != ends_.end(); }

}  // namespace rlx::grammar
