#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): random words from a counter and a key.
namespace rlx::philox {

inline constexpr int rounds = 10;
inline constexpr std::array<std::uint32_t, 2> multipliers = {0xD2511F53, 0xCD9E8D57}, key_steps = {0x9E3779B9, 0xBB67AE85};

using Words = std::array<std::uint32_t, 4>;

constexpr Words words(Words counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t first = std::uint64_t{multipliers[0]} * counter[0], second = std::uint64_t{multipliers[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    for (std::size_t i = 0; i < 2; ++i) key[i] += key_steps[i];
  }
  return counter;
}

/// A number in [0, 1) of 53 random bits.
constexpr double unit(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

}  // namespace rlx::philox
