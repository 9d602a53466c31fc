// Sorting by stable radix passes over ranks: unsigned integers in the order of the keys.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>

#include "backends/cpu/routines/elements.h"
#include "backends/cpu/routines/radix.h"
#include "backends/cpu/routines/ranks.h"
#include "backends/cpu/routines/routine.h"
#include "ir/op.h"
#include "ops/axis_lines.h"

namespace rlx::cpu {
namespace {

/// Where the elements of a line lie.
struct Line {
  std::int64_t begin, length, stride;
};

DType type_of_key(const RoutineCall& call, std::int64_t key) { return call.operands[static_cast<std::size_t>(key)].dtype; }

template <class Stored, class Bits>
void read_ranks(const RoutineCall& call, std::int64_t key, const Line& line, const LineParts& parts, Placed<Bits>* items) {
  const RoutineArray& x = call.operands[static_cast<std::size_t>(key)];
  const StoredRanks<Stored> ranks(x.dtype, std::get<bool>(call.attrs[2]));
  const Stored* in = x.as<const Stored>() + line.begin;
  for_each_part(parts, call.pool, [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      items[i].rank = static_cast<Bits>(ranks(in[static_cast<std::int64_t>(items[i].from) * line.stride]));
  });
}

template <class Stored, class Bits>
void move_elements(const RoutineArray& x, const RoutineArray& y, const Line& line, const LineParts& parts, const Placed<Bits>* items,
                   ThreadPool& pool) {
  const Stored* in = x.as<const Stored>() + line.begin;
  Stored* out = y.as<Stored>() + line.begin;
  for_each_part(parts, pool, [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i * line.stride] = in[static_cast<std::int64_t>(items[i].from) * line.stride];
  });
}

template <class Bits>
void sort_line(const RoutineCall& call, const Line& line, const LineParts& parts) {
  using Widest = RadixSort<Placed<Bits>, Bits, 8 * sizeof(Bits)>;
  const auto n = static_cast<std::size_t>(line.length), counters = static_cast<std::size_t>(Widest::counters(parts));
  auto* items = reinterpret_cast<Placed<Bits>*>(call.scratch(2 * n * sizeof(Placed<Bits>) + counters * sizeof(Bits)));
  auto* other = items + n;
  auto* counts = reinterpret_cast<Bits*>(other + n);
  for (std::size_t i = 0; i < n; ++i) items[i].from = static_cast<Bits>(i);
  // Passes are stable: by the last key first.
  for (std::int64_t key = std::get<std::int64_t>(call.attrs[1]) - 1; key >= 0; --key)
    with_ordered(type_of_key(call, key), [&]<class E>(E*) {
      using Stored = BitsOf<E>;
      read_ranks<Stored>(call, key, line, parts, items);
      if (RadixSort<Placed<Bits>, Bits, 8 * sizeof(Stored)>(parts, call.pool).sort(items, other, counts) == other) std::swap(items, other);
    });
  for (std::size_t k = 0; k < call.operands.size(); ++k) {
    const RoutineArray &x = call.operands[k], &y = call.results[k];
    with_width(x.dtype, [&]<class Stored>(Stored*) { move_elements<Stored>(x, y, line, parts, items, call.pool); });
  }
}

/// Puts elements of one rank whose bits differ into their order on the line: zeros of both signs, and NaNs.
template <class Bits>
void write_equals(const RoutineCall& call, const Line& line, const StoredRanks<Bits>& ranks, Bits rank, std::span<const Bits> sorted) {
  const Bits* in = call.operands[0].as<const Bits>() + line.begin;
  const auto equals = std::ranges::equal_range(sorted, rank);
  Bits* out = call.results[0].as<Bits>() + line.begin + (equals.begin() - sorted.begin()) * line.stride;
  for (std::int64_t i = 0, left = std::ssize(equals); left > 0; ++i) {
    const Bits bits = in[i * line.stride];
    if (ranks(bits) != rank) continue;
    *out = bits;
    out += line.stride;
    --left;
  }
}

/// Writes what `change` makes of each of `count` elements, in vectors where those on both sides are neighbours.
template <class Bits, class Change>
void change_each(const Bits* from, std::int64_t from_stride, Bits* to, std::int64_t to_stride, std::int64_t count, const Change& change) {
  constexpr std::int64_t block = 64;
  std::int64_t i = 0;
  for (; from_stride == 1 && to_stride == 1 && i + block <= count; i += block) {
    std::array<Bits, block> values;
    for (std::int64_t k = 0; k < block; ++k) values[static_cast<std::size_t>(k)] = change(from[i + k]);
    std::memcpy(to + i, values.data(), sizeof values);
  }
  for (; i < count; ++i) to[i * to_stride] = change(from[i * from_stride]);
}

/// Keys that nothing goes along with: ranks are sorted by themselves, and are elements again.
template <class Bits>
void sort_keys(const RoutineCall& call, const Line& line, const LineParts& parts) {
  using Sort = RadixSort<Bits, std::uint32_t, 8 * sizeof(Bits)>;
  const auto n = static_cast<std::size_t>(line.length), counters = static_cast<std::size_t>(Sort::counters(parts));
  auto* counts = reinterpret_cast<std::uint32_t*>(call.scratch(counters * sizeof(std::uint32_t) + 2 * n * sizeof(Bits)));
  auto* keys = reinterpret_cast<Bits*>(counts + counters);  // narrower ones may end anywhere
  const StoredRanks<Bits> ranks(call.operands[0].dtype, std::get<bool>(call.attrs[2]));
  const Bits* in = call.operands[0].as<const Bits>() + line.begin;
  Bits* out = call.results[0].as<Bits>() + line.begin;
  std::atomic<bool> differ = false;  // elements of one rank
  for_each_part(parts, call.pool, [=, &differ](std::int64_t, std::int64_t begin, std::int64_t end) {
    Bits difference = 0;
    change_each(in + begin * line.stride, line.stride, keys + begin, 1, end - begin, [=, &difference](Bits bits) {
      const Bits rank = ranks(bits);
      difference |= static_cast<Bits>(ranks.element(rank) ^ bits);
      return rank;
    });
    if (difference != 0) differ = true;
  });
  const Bits* sorted = Sort(parts, call.pool).sort(keys, keys + n, counts);
  for_each_part(parts, call.pool, [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    change_each(sorted + begin, 1, out + begin * line.stride, line.stride, end - begin, [=](Bits rank) { return ranks.element(rank); });
  });
  if (!differ) return;
  for (const Bits rank : {ranks.zero(), ranks.nan()}) write_equals<Bits>(call, line, ranks, rank, {sorted, n});
}

using SortLine = void (*)(const RoutineCall&, const Line&, const LineParts&);

SortLine sort_of(const RoutineCall& call, std::int64_t length) {
  bool wide = length > std::int64_t{std::numeric_limits<std::uint32_t>::max()};
  SortLine of_keys = nullptr;
  if (call.operands.size() == 1 && !wide) with_ordered(type_of_key(call, 0), [&]<class E>(E*) { of_keys = sort_keys<BitsOf<E>>; });
  for (std::int64_t key = 0; key < std::get<std::int64_t>(call.attrs[1]); ++key) wide |= info(type_of_key(call, key)).bits == 64;
  return of_keys ? of_keys : wide ? sort_line<std::uint64_t> : sort_line<std::uint32_t>;
}

void run(const RoutineCall& call) {
  const AxisLines lines(call.operands[0].shape, std::get<std::int64_t>(call.attrs[0]));
  if (lines.count == 0) return;
  const SortLine sort = sort_of(call, lines.length);
  const auto line = [&](std::int64_t i) { return Line{lines.begin(i), lines.length, lines.stride}; };
  // Few long lines are sorted by all threads together, others by a thread each.
  constexpr std::int64_t shared_length = 1 << 15;
  if (lines.count < 2 * call.pool.size() && lines.length >= shared_length) {
    for (std::int64_t i = 0; i < lines.count; ++i) sort(call, line(i), {call.pool.size(), lines.length});
    return;
  }
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / lines.length);
  call.pool.parallel_for(lines.count, grain, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) sort(call, line(i), {1, lines.length});
  });
}

bool takes(const Graph&, const Node& node) {
  return std::ranges::none_of(node.results, [](const Type& type) { return is_packed(type.dtype); });
}

const RegisterRoutine sort_routine({"sort", takes, run});

}  // namespace
}  // namespace rlx::cpu
