#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rlx {

/// How the values of a type in blocks are made of integer codes and numbers that neighbours share: x = scale * code - min, in f32. For
/// devices that decode weights by such products themselves.
struct BlockParts {
  /// Numbers of groups as an integer for each times one number of the block.
  struct Levels {
    void (*factors)(const std::byte* block, std::int8_t* factors) = nullptr;
    void (*unit)(const std::byte* block, float* unit) = nullptr;
  };

  std::string_view type;                                      // of GGUF files
  int group;                                                  // neighbours with one scale and one minimum; divides a block
  int lowest, highest;                                        // code
  int distinct;                                               // codes between them
  int scale_bits;                                             // of a scale's significand: f16 holds 11 of them
  void (*codes)(const std::byte* block, std::int8_t* codes);  // of one block, as are those below
  void (*scales)(const std::byte* block, float* scales);
  void (*minima)(const std::byte* block, float* minima);  // null: there are none
  Levels scale_levels = {}, minimum_levels = {};          // null: scales are no such products, or alone in their block
};

/// The parts of a type of more than one value a block, by its name ("Q4_K"); null for others.
const BlockParts* find_block_parts(std::string_view type);

}  // namespace rlx
