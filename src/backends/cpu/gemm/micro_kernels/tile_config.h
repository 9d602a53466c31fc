#pragma once
#include <cstdint>

namespace rlx::cpu {

/// The operand of LDTILECFG, which gives AMX's tile registers their shapes. It lies in static memory wherever it is used: the intrinsics of
/// GCC 12 do not say that they read it, so that what is stored into a local one just before is dropped.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

consteval TileConfig make_whole_tiles() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.row_bytes[tile] = 64, config.rows[tile] = 16;
  return config;
}

/// All eight registers at their largest: 16 rows of 64 bytes.
inline constexpr TileConfig whole_tiles = make_whole_tiles();

}  // namespace rlx::cpu
