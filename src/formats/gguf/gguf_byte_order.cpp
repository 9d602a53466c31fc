#include "formats/gguf/gguf_byte_order.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace rlx {
namespace {

/// `count` numbers of `width` bytes each, from byte `offset` of a block on.
struct Numbers {
  std::string_view format;
  std::size_t offset, width, count;
};

/// Formats of several values a block; those without a row hold bytes only.
constexpr std::array<Numbers, 24> block_numbers{{
    {"Q4_0", 0, 2, 1},    {"Q4_1", 0, 2, 2},     {"Q5_0", 0, 2, 1},    {"Q5_1", 0, 2, 2},   {"Q8_0", 0, 2, 1},    {"Q8_1", 0, 2, 2},
    {"Q2_K", 80, 2, 2},   {"Q3_K", 108, 2, 1},   {"Q4_K", 0, 2, 2},    {"Q5_K", 0, 2, 2},   {"Q6_K", 208, 2, 1},  {"Q8_K", 0, 4, 1},
    {"Q8_K", 260, 2, 16}, {"IQ2_XXS", 0, 2, 33}, {"IQ2_XS", 0, 2, 33}, {"IQ2_S", 0, 2, 1},  {"IQ3_XXS", 0, 2, 1}, {"IQ3_S", 0, 2, 1},
    {"IQ1_S", 0, 2, 1},   {"IQ1_S", 34, 2, 8},   {"IQ4_NL", 0, 2, 1},  {"IQ4_XS", 0, 2, 2}, {"TQ1_0", 52, 2, 1},  {"TQ2_0", 64, 2, 1},
}};

void turn_numbers(std::span<std::byte> bytes, std::size_t width) {
  for (std::size_t at = 0; at < bytes.size(); at += width) turn_number(bytes.subspan(at, width));
}

}  // namespace

void turn_number(std::span<std::byte> bytes) { std::reverse(bytes.begin(), bytes.end()); }

void turn_blocks(const BlockFormat& format, std::span<std::byte> bytes) {
  const auto block = static_cast<std::size_t>(format.bytes);
  if (format.values == 1) return turn_numbers(bytes, block);
  for (const Numbers& numbers : block_numbers) {
    if (numbers.format != format.name) continue;
    for (std::size_t at = 0; at < bytes.size(); at += block)
      turn_numbers(bytes.subspan(at + numbers.offset, numbers.width * numbers.count), numbers.width);
  }
}

}  // namespace rlx
