// Sorting by stable radix passes over ranks: unsigned integers in the order of the keys.
#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/routines/ranks.h"
#include "backends/cpu/routines/routine.h"
#include "ir/op.h"

namespace rlx::cpu {
namespace {

template <class Bits>
struct Item {
  Bits rank;
  Bits from;  // where the element stands on its line
};

struct Line {
  std::int64_t begin, length, stride;
};

/// The parts of a line that threads take, each with counts of its own.
struct Parts {
  std::int64_t count, length;
  std::int64_t begin(std::int64_t part) const { return std::min(length, part * ((length + count - 1) / count)); }
};

/// Few counters where a line is short, few passes where it is long.
int digit_bits(const Parts& parts) { return parts.length < 4096 ? 8 : 11; }

template <class Bits, class Stored>
void read_ranks(const RoutineArray& key, const Line& line, bool descending, const Parts& parts, Item<Bits>* items, ThreadPool& pool) {
  const Ranks<Stored> ranks(key.dtype, descending);
  const Stored* x = key.as<const Stored>() + line.begin;
  pool.parallel_for(parts.count, 1, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = parts.begin(first); i < parts.begin(last); ++i)
      items[i].rank = ranks(x[static_cast<std::int64_t>(items[i].from) * line.stride]);
  });
}

template <class Bits>
void read_ranks(const RoutineArray& key, const Line& line, bool descending, const Parts& parts, Item<Bits>* items, ThreadPool& pool) {
  switch (info(key.dtype).bits) {
    case 64:
      if constexpr (sizeof(Bits) == 8) return read_ranks<Bits, std::uint64_t>(key, line, descending, parts, items, pool);
      break;
    case 32: return read_ranks<Bits, std::uint32_t>(key, line, descending, parts, items, pool);
    case 16: return read_ranks<Bits, std::uint16_t>(key, line, descending, parts, items, pool);
    default: return read_ranks<Bits, std::uint8_t>(key, line, descending, parts, items, pool);
  }
}

/// Moves items into the order of one digit; false where all have the same, and nothing moved.
template <class Bits>
bool radix_pass(const Item<Bits>* from, Item<Bits>* to, int shift, const Parts& parts, std::uint64_t* counts, ThreadPool& pool) {
  const std::size_t digits = std::size_t{1} << digit_bits(parts);
  const auto digit = [&](std::int64_t i) { return static_cast<std::size_t>(from[i].rank >> shift) & (digits - 1); };
  pool.parallel_for(parts.count, 1, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t part = first; part < last; ++part) {
      std::uint64_t* mine = counts + static_cast<std::size_t>(part) * digits;
      std::fill_n(mine, digits, 0);
      for (std::int64_t i = parts.begin(part); i < parts.begin(part + 1); ++i) ++mine[digit(i)];
    }
  });
  std::uint64_t place = 0;
  for (std::size_t d = 0; d < digits; ++d) {
    const std::uint64_t before = place;
    for (std::int64_t part = 0; part < parts.count; ++part) {
      std::uint64_t& count = counts[static_cast<std::size_t>(part) * digits + d];
      place += std::exchange(count, place);
    }
    if (place - before == static_cast<std::uint64_t>(parts.length)) return false;
  }
  pool.parallel_for(parts.count, 1, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t part = first; part < last; ++part) {
      std::uint64_t* mine = counts + static_cast<std::size_t>(part) * digits;
      for (std::int64_t i = parts.begin(part); i < parts.begin(part + 1); ++i) to[mine[digit(i)]++] = from[i];
    }
  });
  return true;
}

template <class Bits>
void insertion_sort(Item<Bits>* items, std::int64_t n) {
  for (std::int64_t i = 1; i < n; ++i) {
    const Item<Bits> item = items[i];
    std::int64_t at = i;
    for (; at > 0 && items[at - 1].rank > item.rank; --at) items[at] = items[at - 1];
    items[at] = item;
  }
}

template <class Stored, class Bits>
void move_elements(const RoutineArray& x, const RoutineArray& y, const Line& line, const Parts& parts, const Item<Bits>* items,
                   ThreadPool& pool) {
  const Stored* in = x.as<const Stored>() + line.begin;
  Stored* out = y.as<Stored>() + line.begin;
  pool.parallel_for(parts.count, 1, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = parts.begin(first); i < parts.begin(last); ++i)
      out[i * line.stride] = in[static_cast<std::int64_t>(items[i].from) * line.stride];
  });
}

template <class Bits>
void sort_line(const RoutineCall& call, const Line& line, const Parts& parts) {
  const auto n = static_cast<std::size_t>(line.length), counters = static_cast<std::size_t>(parts.count) << digit_bits(parts);
  std::byte* space = call.scratch(counters * sizeof(std::uint64_t) + 2 * n * sizeof(Item<Bits>));
  auto* counts = reinterpret_cast<std::uint64_t*>(space);
  auto* items = reinterpret_cast<Item<Bits>*>(counts + counters);
  auto* other = items + n;
  for (std::size_t i = 0; i < n; ++i) items[i].from = static_cast<Bits>(i);
  // Passes are stable: by the last key first.
  for (std::int64_t key = std::get<std::int64_t>(call.attrs[1]) - 1; key >= 0; --key) {
    const RoutineArray& x = call.operands[static_cast<std::size_t>(key)];
    read_ranks(x, line, std::get<bool>(call.attrs[2]), parts, items, call.pool);
    if (n <= 64) insertion_sort(items, line.length);
    else
      for (int shift = 0; shift < info(x.dtype).bits; shift += digit_bits(parts))
        if (radix_pass(items, other, shift, parts, counts, call.pool)) std::swap(items, other);
  }
  for (std::size_t k = 0; k < call.operands.size(); ++k) {
    const RoutineArray &x = call.operands[k], &y = call.results[k];
    switch (info(x.dtype).bits) {
      case 128: move_elements<std::array<std::uint64_t, 2>>(x, y, line, parts, items, call.pool); break;
      case 64: move_elements<std::uint64_t>(x, y, line, parts, items, call.pool); break;
      case 32: move_elements<std::uint32_t>(x, y, line, parts, items, call.pool); break;
      case 16: move_elements<std::uint16_t>(x, y, line, parts, items, call.pool); break;
      default: move_elements<std::uint8_t>(x, y, line, parts, items, call.pool); break;
    }
  }
}

void run(const RoutineCall& call) {
  const std::vector<std::int64_t>& shape = call.operands[0].shape;
  const auto axis = static_cast<std::size_t>(std::get<std::int64_t>(call.attrs[0]));
  std::int64_t inner = 1, outer = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) (d < axis ? outer : inner) *= d == axis ? 1 : shape[d];
  const std::int64_t n = shape[axis], lines = outer * inner;
  if (lines == 0 || n == 0) return;
  bool wide = n > std::int64_t{0xffffffff};
  for (std::int64_t key = 0; key < std::get<std::int64_t>(call.attrs[1]); ++key)
    wide |= info(call.operands[static_cast<std::size_t>(key)].dtype).bits == 64;
  const auto sort = wide ? sort_line<std::uint64_t> : sort_line<std::uint32_t>;
  const auto line = [&](std::int64_t i) { return Line{i / inner * n * inner + i % inner, n, inner}; };
  // Few long lines are sorted by all threads together, others by a thread each.
  constexpr std::int64_t shared_length = 1 << 15;
  if (lines < 2 * call.pool.size() && n >= shared_length) {
    for (std::int64_t i = 0; i < lines; ++i) sort(call, line(i), {call.pool.size(), n});
    return;
  }
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / n);
  call.pool.parallel_for(lines, grain, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) sort(call, line(i), {1, n});
  });
}

bool takes(const Graph&, const Node& node) {
  return std::ranges::none_of(node.results, [](const Type& type) { return is_packed(type.dtype); });
}

const RegisterRoutine sort_routine({"sort", takes, run});

}  // namespace
}  // namespace rlx::cpu
