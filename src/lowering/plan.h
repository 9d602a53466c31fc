#pragma once
#include <cstdint>
#include <vector>

namespace rlx {

/// A block of scratch memory that is needed from step `first` to step `last`, both included.
struct Lifetime {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
  int in_place_of = -1;  // may take over the memory of this block, which ends where this one begins
};

/// One for any arena.
inline constexpr std::int64_t largest_piece = std::int64_t{1} << 62;

struct MemoryPlan {
  std::vector<std::int64_t> offsets;  // by block, multiples of 64
  std::int64_t bytes = 0;
  std::int64_t piece = largest_piece;  // no block lies in two of them
  std::vector<std::int64_t> chunks;    // the bytes used of each piece
  std::int64_t live_bytes = 0;         // the most that live at one step, what takes over memory counted once: no plan is smaller
};

/// Places all blocks in one arena so that blocks that live at the same time do not overlap: largest first, each in the smallest gap
/// that fits. `piece`: a multiple of 64; the arena may be made of memories of so many bytes, as no block lies in two of them. A larger
/// block begins one, which is as large.
MemoryPlan plan_memory(const std::vector<Lifetime>& blocks, std::int64_t piece = largest_piece);

}  // namespace rlx
