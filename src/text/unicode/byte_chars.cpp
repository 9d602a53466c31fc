#include "text/unicode/byte_chars.h"

#include <array>

#include "text/unicode/unicode.h"

namespace rlx::byte_chars {
namespace {

constexpr bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Tables {
  std::array<std::string, 256> characters;
  std::array<std::int16_t, 512> bytes{};  // by code point; -1: none
};

const Tables& tables() {
  static const Tables result = [] {
    Tables made;
    made.bytes.fill(-1);
    char32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t c = is_printable(byte) ? byte : next++;
      unicode::append_utf8(made.characters[byte], c);
      made.bytes[c] = static_cast<std::int16_t>(byte);
    }
    return made;
  }();
  return result;
}

}  // namespace

std::string_view character(std::uint8_t byte) { return tables().characters[byte]; }

std::string text_for(std::string_view bytes) {
  std::string result;
  for (const char byte : bytes) result += character(static_cast<std::uint8_t>(byte));
  return result;
}

std::optional<std::string> bytes(std::string_view text) {
  const Tables& known = tables();
  std::string result;
  while (!text.empty()) {
    const unicode::Decoded next = unicode::decode(text);
    if (next.value >= known.bytes.size() || known.bytes[next.value] < 0) return std::nullopt;
    result += static_cast<char>(known.bytes[next.value]);
    text.remove_prefix(next.bytes);
  }
  return result;
}

}  // namespace rlx::byte_chars
