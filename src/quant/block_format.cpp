#include "quant/block_format.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "quant/schemes.h"

namespace rlx {
namespace {

using namespace quant;

template <class Scheme>
constexpr BlockFormat format_of() {
  BlockFormat format{Scheme::name, Scheme::id, Scheme::values, Scheme::bytes, nullptr, Scheme::encode};
  if constexpr (Scheme::values == 1) format.decode = Scheme::decode;
  else format.decode = decode_blocks<Scheme>;
  return format;
}

template <class... Scheme>
constexpr std::array<BlockFormat, sizeof...(Scheme)> formats_of(SchemeList<Scheme...>) {
  return {format_of<Scheme>()...};
}

constexpr std::array formats = formats_of(Schemes{});

constexpr char upper(char letter) { return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter; }

}  // namespace

std::span<const BlockFormat> block_formats() { return formats; }

const BlockFormat* find_block_format(std::uint32_t id) {
  const BlockFormat* const found = std::ranges::find(formats, id, &BlockFormat::id);
  return found == formats.end() ? nullptr : found;
}

const BlockFormat* find_block_format(std::string_view name) {
  const BlockFormat* const found =
      std::ranges::find_if(formats, [&](const BlockFormat& format) { return std::ranges::equal(format.name, name, {}, {}, upper); });
  return found == formats.end() ? nullptr : found;
}

}  // namespace rlx
