#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/thread_pool.h"

namespace rlx::cpu {

/// The parts of a line that threads take, each with counts of its own.
struct LineParts {
  std::int64_t count, length;
  std::int64_t begin(std::int64_t part) const { return std::min(length, part * ((length + count - 1) / count)); }
};

/// For each part, with the range of its elements.
template <class Body>
void for_each_part(const LineParts& parts, ThreadPool& pool, const Body& body) {
  pool.parallel_for(parts.count, 1, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t part = first; part < last; ++part) body(part, parts.begin(part), parts.begin(part + 1));
  });
}

/// What is sorted by a rank, with where it stood on its line.
template <class Bits>
struct Placed {
  Bits rank;
  Bits from;
};

template <class Bits>
Bits rank_of(const Placed<Bits>& item) {
  return item.rank;
}
template <class Bits>
  requires std::is_unsigned_v<Bits>
Bits rank_of(Bits rank) {
  return rank;
}

/// Sorts by ranks of `bits` bits in stable passes over their digits. `Count` holds the length of a line.
template <class Item, class Count, int bits>
class RadixSort {
 public:
  RadixSort(const LineParts& parts, ThreadPool& pool) : parts_(parts), pool_(pool) {}

  /// Of what `sort` is given.
  static std::int64_t counters(const LineParts& parts) {
    return is_short(parts) ? counters<short_digit>(parts) : counters<long_digit>(parts);
  }

  /// Where the items are then: in `items` or in `other`, which has as much room.
  Item* sort(Item* items, Item* other, Count* counters) const {
    constexpr std::int64_t few = 64;
    if (parts_.length <= few) return insertion_sort(items);
    return is_short(parts_) ? sort_digits<short_digit>(items, other, counters) : sort_digits<long_digit>(items, other, counters);
  }

 private:
  // Few counters where a line is short, few passes where it is long.
  static constexpr int short_digit = 8, long_digit = bits == 8 ? 8 : 11;
  static bool is_short(const LineParts& parts) { return parts.length < 4096; }

  template <int digit_bits>
  static constexpr int passes = (bits + digit_bits - 1) / digit_bits;
  template <int digit_bits>
  static constexpr std::int64_t digits = std::int64_t{1} << digit_bits;
  template <int digit_bits>
  static std::int64_t digit(const Item& item, int pass) {
    return static_cast<std::int64_t>(rank_of(item) >> (pass * digit_bits)) & (digits<digit_bits> - 1);
  }
  template <int digit_bits>
  static std::int64_t counters(const LineParts& parts) {
    return digits<digit_bits> * (parts.count == 1 ? passes<digit_bits> : parts.count);
  }

  Item* insertion_sort(Item* items) const {
    for (std::int64_t i = 1; i < parts_.length; ++i) {
      const Item item = items[i];
      std::int64_t at = i;
      for (; at > 0 && rank_of(items[at - 1]) > rank_of(item); --at) items[at] = items[at - 1];
      items[at] = item;
    }
    return items;
  }

  template <int digit_bits>
  Item* sort_digits(Item* items, Item* other, Count* counters) const {
    if (parts_.count == 1) count_all<digit_bits>(items, counters, std::make_integer_sequence<int, passes<digit_bits>>());
    for (int pass = 0; pass < passes<digit_bits>; ++pass) {
      Count* counts = parts_.count == 1 ? counters + pass * digits<digit_bits> : counters;
      if (parts_.count > 1) count_parts<digit_bits>(items, pass, counts);
      if (!place_counts(counts, digits<digit_bits>)) continue;  // all have the same digit
      move<digit_bits>(items, other, pass, counts);
      std::swap(items, other);
    }
    return items;
  }

  /// The digits of all passes at one reading: which are there does not change with the order.
  template <int digit_bits, int... pass>
  void count_all(const Item* items, Count* counts, std::integer_sequence<int, pass...> /*passes*/) const {
    std::fill_n(counts, sizeof...(pass) * digits<digit_bits>, Count{0});
    for (std::int64_t i = 0; i < parts_.length; ++i) {
      const Item item = items[i];
      (++counts[pass * digits<digit_bits> + digit<digit_bits>(item, pass)], ...);
    }
  }
  template <int digit_bits>
  void count_parts(const Item* items, int pass, Count* counts) const {
    for_each_part(parts_, pool_, [=](std::int64_t part, std::int64_t begin, std::int64_t end) {
      Count* mine = counts + part * digits<digit_bits>;
      std::fill_n(mine, digits<digit_bits>, Count{0});
      for (std::int64_t i = begin; i < end; ++i) ++mine[digit<digit_bits>(items[i], pass)];
    });
  }
  /// Makes counts the places where the items of a digit and a part begin; false where all have one digit.
  bool place_counts(Count* counts, std::int64_t digits) const {
    Count place = 0;
    for (std::int64_t d = 0; d < digits; ++d) {
      const Count before = place;
      for (std::int64_t part = 0; part < parts_.count; ++part) place += std::exchange(counts[part * digits + d], place);
      if (place - before == static_cast<Count>(parts_.length)) return false;
    }
    return true;
  }
  template <int digit_bits>
  void move(const Item* from, Item* to, int pass, Count* places) const {
    for_each_part(parts_, pool_, [=](std::int64_t part, std::int64_t begin, std::int64_t end) {
      Count* mine = places + part * digits<digit_bits>;
      for (std::int64_t i = begin; i < end; ++i) {
        const Item item = from[i];
        to[mine[digit<digit_bits>(item, pass)]++] = item;
      }
    });
  }

  const LineParts& parts_;
  ThreadPool& pool_;
};

}  // namespace rlx::cpu
