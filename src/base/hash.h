#pragma once
#include <cstddef>
#include <cstdint>

namespace rlx {

/// Combines a hash with one more value (the finaliser of splitmix64).
constexpr std::size_t hash_mix(std::size_t seed, std::size_t value) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ull + value + 0x632BE59BD9B4E019ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return static_cast<std::size_t>(x ^ (x >> 31));
}

}  // namespace rlx
