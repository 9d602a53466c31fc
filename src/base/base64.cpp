#include "base/base64.h"

#include <array>
#include <cstdint>

#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> base64_values = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < base64_digits.size(); ++i) values[static_cast<unsigned char>(base64_digits[i])] = static_cast<std::int8_t>(i);
  return values;
}();

}  // namespace

std::string decode_base64(std::string_view text, std::string_view what) {
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  if (text.size() % 4 == 1) fail("{}: {} characters of base64 hold no whole bytes", what, text.size());
  std::string result;
  result.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::int8_t value = base64_values[static_cast<unsigned char>(c)];
    if (value < 0) fail("{}: a byte of {} is not base64", what, static_cast<int>(static_cast<unsigned char>(c)));
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    result += static_cast<char>(bits >> count & 0xFF);
  }
  return result;
}

std::string encode_base64(std::string_view bytes) {
  std::string result;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) result += base64_digits[bits >> (count - 6) & 63];
  }
  if (count > 0) result += base64_digits[bits << (6 - count) & 63];
  while (result.size() % 4 != 0) result += '=';
  return result;
}

}  // namespace rlx
