#include "backends/cpu/gemm/pack.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace rlx::cpu {
namespace {

// Lanes are read one after the other, each along its depth: so many units at a time that the part of the panel they go to stays in L1.
constexpr std::int64_t depth_block = 64;

// Lanes that are read at once; panels are hardly wider.
constexpr std::int64_t most_lanes = 64;

template <class T>
void pack_any(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width) {
  constexpr std::int64_t group = Format<T>::group;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    for (std::int64_t k = 0; k < depth; k += group) {
      T unit[group] = {};
      for (std::int64_t g = 0; g < std::min(group, depth - k); ++g)
        unit[g] = from.data[lane * from.lane_stride + (k + g) * from.depth_stride];
      std::memcpy(to + k / group * width + lane, unit, sizeof(unit));
    }
  }
}

/// An element at its place in a unit: in a register, as an integer read from where its bytes were just stored one by one waits for them.
template <class T>
std::uint32_t element_of_unit(T element, std::int64_t index) {
  using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
  return std::uint32_t{std::bit_cast<Bits>(element)} << (8 * static_cast<std::int64_t>(sizeof(T)) * index);
}

/// Steps side by side in memory, unit by unit; the last unit is filled up with zeros.
template <class T>
void pack_units(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width) {
  constexpr std::int64_t group = Format<T>::group;
  const std::int64_t whole = depth / group * group, rest = depth - whole;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const T* const source = from.data + lane * from.lane_stride;
    for (std::int64_t k = 0; k < whole; k += group) std::memcpy(to + k / group * width + lane, source + k, sizeof(Packed<T>));
    if constexpr (group > 1) {
      if (rest == 0) continue;
      Packed<T> unit = 0;
      for (std::int64_t g = 0; g < group - 1; ++g)
        if (g < rest) unit |= element_of_unit(source[whole + g], g);
      to[whole / group * width + lane] = unit;
    }
  }
}

/// Copies by moves of 4 values, the last overlapping the one before: a call, or a loop over what is left, takes longer than such a copy.
template <class T>
void copy_values(const T* from, std::int64_t count, T* to) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
  const auto move = [&](std::int64_t at) { *reinterpret_cast<Four*>(to + at) = *reinterpret_cast<const Four*>(from + at); };
  if (count < 4) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (std::int64_t at = 0; at + 4 < count; at += 4) move(at);
  move(count - 4);
}

typedef std::uint16_t Halves __attribute__((vector_size(16), aligned(1), may_alias));
typedef std::uint64_t Longs __attribute__((vector_size(16)));
typedef std::uint8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));

/// The first `lanes` elements of a step, 4 or 8, in a register; through an integer, as a copy of a part of one would go through memory.
template <int lanes, class T>
Halves load_lanes(const T* step) {
  constexpr std::size_t bytes = lanes * sizeof(T);
  if constexpr (bytes == sizeof(Halves)) {
    return *reinterpret_cast<const Halves*>(step);
  } else {
    std::conditional_t<bytes == 8, std::uint64_t, std::uint32_t> bits = 0;
    std::memcpy(&bits, step, bytes);
    return reinterpret_cast<Halves>(Longs{bits, 0});
  }
}

/// The first half of the elements of each, in turn; then the second half.
Halves zip_low(Halves a, Halves b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
Halves zip_high(Halves a, Halves b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
Halves zip_bytes(Halves a, Halves b) {
  return reinterpret_cast<Halves>(__builtin_shufflevector(reinterpret_cast<Bytes>(a), reinterpret_cast<Bytes>(b), 0, 16, 1, 17, 2, 18, 3,
                                                          19, 4, 20, 5, 21, 6, 22, 7, 23));
}

/// Writes `lanes` units, 4 or 8, of what lies from `lane` on in the steps of a group.
template <int lanes, class T>
void interleave_lanes(const T* const* steps, std::int64_t lane, Packed<T>* to) {
  const auto load = [&](int g) { return load_lanes<lanes>(steps[g] + lane); };
  Halves first, second;  // the halves of each unit
  if constexpr (Format<T>::group == 2) first = load(0), second = load(1);
  else first = zip_bytes(load(0), load(1)), second = zip_bytes(load(2), load(3));
  const Halves low = zip_low(first, second);
  std::memcpy(to + lane, &low, sizeof(low));
  if constexpr (lanes == 4) return;
  const Halves high = zip_high(first, second);
  std::memcpy(to + lane + 4, &high, sizeof(high));
}

/// Writes a unit for each lane from a group of steps whose lanes lie side by side; the last registers overlap those before.
template <class T>
void pack_group(const T* const* steps, std::int64_t lanes, Packed<T>* to) {
  if constexpr (Format<T>::group == 1) {
    copy_values(steps[0], lanes, to);
  } else if (lanes < 4) {
    for (std::int64_t i = 0; i < lanes * Format<T>::group; ++i)
      reinterpret_cast<T*>(to)[i] = steps[i % Format<T>::group][i / Format<T>::group];
  } else if (lanes < 8) {
    interleave_lanes<4>(steps, 0, to);
    interleave_lanes<4>(steps, lanes - 4, to);
  } else {
    for (std::int64_t lane = 0; lane + 8 < lanes; lane += 8) interleave_lanes<8>(steps, lane, to);
    interleave_lanes<8>(steps, lanes - 8, to);
  }
}

/// The unit of what lies at an offset in each of a group of steps.
template <class T>
Packed<T> unit_at(const T* const* steps, std::int64_t offset) {
  if constexpr (Format<T>::group == 1) {
    return steps[0][offset];
  } else {
    std::uint32_t unit = 0;
    for (std::int64_t g = 0; g < Format<T>::group; ++g) unit |= element_of_unit(steps[g][offset], g);
    return unit;
  }
}

/// Lanes whose offsets count up by one from the first.
std::int64_t run_length(const std::int64_t* offsets, std::int64_t lanes) {
  std::int64_t length = 1;
  while (length < lanes && offsets[length] == offsets[0] + length) ++length;
  return length;
}

/// Units of lanes that follow each other in memory.
template <class T>
void pack_run(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width) {
  constexpr std::int64_t group = Format<T>::group;
  static constexpr T nothing[most_lanes] = {};
  for (std::int64_t k = 0; k < depth; k += group) {
    const T* steps[group];
    for (std::int64_t g = 0; g < group; ++g)
      steps[g] = k + g < depth ? from.data + from.lane_offsets[0] + from.depth_offsets[k + g] : nothing;
    pack_group(steps, lanes, to + k / group * width);
  }
}

template <class T>
void pack_by_tables(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width) {
  constexpr std::int64_t group = Format<T>::group;
  const std::int64_t run = std::min(run_length(from.lane_offsets, lanes), most_lanes);
  if (run > 1) {  // neighbours in a row of an image lie side by side
    pack_run(from, run, depth, to, width);
    if (run < lanes)
      pack_by_tables(Strided<T>{from.data, 0, 0, from.lane_offsets + run, from.depth_offsets}, lanes - run, depth, to + run, width);
    return;
  }
  const std::int64_t whole = depth / group * group;
  for (std::int64_t k = 0; k < whole; k += group) {
    const T* steps[group];
    for (std::int64_t g = 0; g < group; ++g) steps[g] = from.data + from.depth_offsets[k + g];
    for (std::int64_t lane = 0; lane < lanes; ++lane) to[k / group * width + lane] = unit_at(steps, from.lane_offsets[lane]);
  }
  if (whole == depth) return;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    T unit[group] = {};
    for (std::int64_t k = whole; k < depth; ++k) unit[k - whole] = from.data[from.lane_offsets[lane] + from.depth_offsets[k]];
    std::memcpy(to + whole / group * width + lane, unit, sizeof(unit));
  }
}

/// Lanes side by side in memory: every step is a copy, or several steps alternate. Expects whole units.
template <class T>
void pack_rows(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width) {
  constexpr std::int64_t group = Format<T>::group;
  for (std::int64_t k = 0; k < depth; k += group) {
    const T* const step = from.data + k * from.depth_stride;
    const T* steps[group];
    for (std::int64_t g = 0; g < group; ++g) {
      steps[g] = step + g * from.depth_stride;
      __builtin_prefetch(steps[g] + 32);  // for the next panels: the steps lie so far apart that the processor does not see it coming
    }
    pack_group(steps, lanes, to + k / group * width);
  }
}

/// Steps side by side in memory: a transposition of units, by squares of 4 that stay in registers. Expects 4 lanes or more; where their
/// number is no multiple of 4, the last squares overlap, which is faster than single values.
template <class T>
void pack_columns(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width) {
  using U = Packed<T>;
  typedef U Square __attribute__((vector_size(4 * sizeof(U))));
  typedef U Unaligned __attribute__((vector_size(4 * sizeof(U)), aligned(alignof(T)), may_alias));
  constexpr std::int64_t group = Format<T>::group;
  const std::int64_t lane_stride = from.lane_stride;
  const std::int64_t square_depth = depth / (4 * group) * (4 * group);
  for (std::int64_t next = 0; next < lanes; next += 4) {
    const std::int64_t lane = std::min(next, lanes - 4);
    for (std::int64_t k = 0; k < square_depth; k += 4 * group) {
      const T* source = from.data + lane * lane_stride + k;
      // A line of the next block of depth for each square: the processor does not follow lanes that end after a few lines each.
      const std::int64_t square = k / (4 * group);
      __builtin_prefetch(reinterpret_cast<const std::byte*>(from.data + (lane + square % 4) * lane_stride + depth_block * group) +
                         square / 4 * 64);
      const Square a = *reinterpret_cast<const Unaligned*>(source), b = *reinterpret_cast<const Unaligned*>(source + lane_stride);
      const Square c = *reinterpret_cast<const Unaligned*>(source + 2 * lane_stride);
      const Square d = *reinterpret_cast<const Unaligned*>(source + 3 * lane_stride);
      const Square ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Square cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      U* target = to + k / group * width + lane;
      *reinterpret_cast<Unaligned*>(target) = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
      *reinterpret_cast<Unaligned*>(target + width) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
      *reinterpret_cast<Unaligned*>(target + 2 * width) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
      *reinterpret_cast<Unaligned*>(target + 3 * width) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
  }
  pack_units<T>({from.data + square_depth, lane_stride, 1}, lanes, depth - square_depth, to + square_depth / group * width, width);
}

}  // namespace

template <class T>
void pack_panel(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width) {
  constexpr std::int64_t group = Format<T>::group;
  for (std::int64_t k = 0; k < depth; k += depth_block * group) {
    const std::int64_t steps = std::min(depth_block * group, depth - k), whole = steps / group * group;
    const Strided<T> source = from.at(0, k);
    Packed<T>* target = to + k / group * width;
    if (from.lane_offsets) {
      pack_by_tables(source, lanes, steps, target, width);
    } else if (from.lane_stride == 1) {
      pack_rows(source, lanes, whole, target, width);
      if (whole < steps) pack_any(source.at(0, whole), lanes, steps - whole, target + whole / group * width, width);
    } else if (from.depth_stride == 1) {
      if (lanes >= 4) pack_columns(source, lanes, steps, target, width);
      else pack_units(source, lanes, steps, target, width);
    } else {
      pack_any(source, lanes, steps, target, width);
    }
    if (lanes == width) continue;
    for (std::int64_t unit = 0; unit < units_of<T>(steps); ++unit)
      std::fill(target + unit * width + lanes, target + (unit + 1) * width, Packed<T>{0});
  }
}

// To the panels of a type without units, a block is a panel whose lanes are the steps of depth.
template <class T>
void pack_blocks(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width, std::int64_t block) {
  using Single = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
  static_assert(sizeof(Single) == sizeof(T));
  const std::int64_t steps = block * Format<T>::group;
  for (std::int64_t k = 0; k < depth; k += steps, to += width * block) {
    const Strided<T> rows = from.at(0, k);
    const Strided<Single> columns{reinterpret_cast<const Single*>(rows.data), rows.depth_stride, rows.lane_stride, rows.depth_offsets,
                                  rows.lane_offsets};
    pack_panel(columns, std::min(steps, depth - k), lanes, reinterpret_cast<Single*>(to), steps);
    std::fill(to + lanes * block, to + width * block, Packed<T>{0});
  }
}

void raise(std::uint32_t* panel, std::int64_t units) {
  for (std::int64_t i = 0; i < units; ++i) panel[i] ^= 0x80808080U;
}

void find_starts(const std::uint32_t* panel, std::int64_t units, std::int64_t width, std::int32_t* starts) {
  typedef std::int16_t Pairs __attribute__((vector_size(16), aligned(4), may_alias));
  typedef std::int32_t Ints __attribute__((vector_size(16)));
  typedef std::uint32_t Sums __attribute__((vector_size(16)));  // modulo 2^32, as the kernel's
  constexpr std::int64_t lanes = 4, vectors = 4;
  for (std::int64_t col = 0; col < width; col += lanes * vectors) {
    Sums sums[vectors] = {};
    for (std::int64_t unit = 0; unit < units; ++unit)
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < vectors; ++v) {
        const Pairs bytes = *reinterpret_cast<const Pairs*>(panel + unit * width + col + v * lanes);
        const Ints pairs = reinterpret_cast<Ints>((bytes << 8 >> 8) + (bytes >> 8));
        sums[v] += reinterpret_cast<Sums>((pairs << 16 >> 16) + (pairs >> 16));
      }
    for (std::int64_t v = 0; v < vectors; ++v) sums[v] *= static_cast<std::uint32_t>(-128);
    std::memcpy(starts + col, sums, sizeof(sums));
  }
}

namespace {

/// 16-bit numbers of any kind.
template <class T>
Strided<std::uint16_t> bits_of(const Strided<T>& from) {
  return {reinterpret_cast<const std::uint16_t*>(from.data), from.lane_stride, from.depth_stride, from.lane_offsets, from.depth_offsets};
}

}  // namespace

void pack_panel(const Strided<F16>& from, std::int64_t lanes, std::int64_t depth, std::uint16_t* to, std::int64_t width) {
  pack_panel(bits_of(from), lanes, depth, to, width);
}

void pack_panel(const Strided<Bf16Weight>& from, std::int64_t lanes, std::int64_t depth, std::uint16_t* to, std::int64_t width) {
  pack_panel(bits_of(from), lanes, depth, to, width);
}

template void pack_panel(const Strided<float>&, std::int64_t, std::int64_t, float*, std::int64_t);
template void pack_panel(const Strided<double>&, std::int64_t, std::int64_t, double*, std::int64_t);
template void pack_panel(const Strided<std::int32_t>&, std::int64_t, std::int64_t, std::int32_t*, std::int64_t);
template void pack_panel(const Strided<Bf16>&, std::int64_t, std::int64_t, std::uint32_t*, std::int64_t);
template void pack_panel(const Strided<std::int8_t>&, std::int64_t, std::int64_t, std::uint32_t*, std::int64_t);
template void pack_blocks(const Strided<Bf16>&, std::int64_t, std::int64_t, std::uint32_t*, std::int64_t, std::int64_t);
template void pack_blocks(const Strided<std::int8_t>&, std::int64_t, std::int64_t, std::uint32_t*, std::int64_t, std::int64_t);

}  // namespace rlx::cpu
