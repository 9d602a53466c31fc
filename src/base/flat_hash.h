#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/hash.h"

namespace rlx {

/// A hash of a short string: eight bytes a step, the last ones read twice rather than one by one.
inline std::uint64_t hash_bytes(std::string_view text) {
  const auto load = [&text]<class T>(T, std::size_t at) {
    T value;
    std::memcpy(&value, text.data() + at, sizeof value);
    return std::uint64_t{value};
  };
  const std::size_t size = text.size();
  if (size < 4) {
    if (size == 0) return hash_mix(0, 0);
    const auto byte = [&text](std::size_t at) { return std::uint64_t{static_cast<unsigned char>(text[at])}; };
    return hash_mix(size, byte(0) << 16 | byte(size / 2) << 8 | byte(size - 1));
  }
  if (size <= 8) return hash_mix(size, load(std::uint32_t{}, 0) << 32 | load(std::uint32_t{}, size - 4));
  std::uint64_t hash = size;
  for (std::size_t at = 0; at + 8 < size; at += 8) hash = hash_mix(hash, load(std::uint64_t{}, at));
  return hash_mix(hash, load(std::uint64_t{}, size - 8));
}

}  // namespace rlx
