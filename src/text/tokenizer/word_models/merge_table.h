#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rlx {

/// Which pairs of symbols merge: (left, right) -> (rank, merged symbol).
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = UINT32_MAX;  // none
    std::int32_t merged = 0;
  };

  /// Adds a pair, or gives one that is already there another merge. No id is -1.
  void add(std::int32_t left, std::int32_t right, Merge merge) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place(key_of(left, right))];
    count_ += slot.key == empty ? 1 : 0;
    slot = {key_of(left, right), merge};
  }

  /// With rank UINT32_MAX if the pair does not merge.
  Merge find(std::int32_t left, std::int32_t right) const {
    if (slots_.empty()) return {};
    return slots_[place(key_of(left, right))].merge;
  }

 private:
  static constexpr std::uint64_t empty = UINT64_MAX;
  struct Slot {
    std::uint64_t key = empty;
    Merge merge;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t place(std::uint64_t key) const {
    std::size_t slot = (key * 0x9E3779B97F4A7C15ull) >> shift_;  // the high bits of a product depend on all bits of the key
    while (slots_[slot].key != key && slots_[slot].key != empty) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const Slot& slot : old) {
      if (slot.key != empty) slots_[place(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  int shift_ = 64;
  std::size_t count_ = 0;
};

}  // namespace rlx
