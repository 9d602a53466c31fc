#include "text/unicode/aligned_text.h"

#include <limits>

#include "rlx/error.h"
#include "text/unicode/unicode.h"

namespace rlx {

AlignedText align(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max())
    fail("tokenizer: a text of {} bytes is too long (allowed: under 4 GiB)", text.size());
  AlignedText result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const unicode::Decoded next = unicode::decode(text.substr(at));
    result.push_back({next.value, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + next.bytes)});
    at += next.bytes;
  }
  return result;
}

std::string to_utf8(std::span<const AlignedChar> text) {
  std::string result;
  for (const AlignedChar& c : text) unicode::append_utf8(result, c.value);
  return result;
}

}  // namespace rlx
