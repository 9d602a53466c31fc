#pragma once
#include "backends/cpu/peaks/loops.h"

// Only plain data and intrinsics here. As in gemm/tile.h, what these are instantiated with must be in an unnamed namespace: each file is
// compiled for another instruction set, and the linker would otherwise be free to keep one instantiation for all.

namespace rlx::cpu {

/// `Unit` gives the Vector and its start, step and value: see ComputeLoop.
template <class Unit>
double run_chains(std::int64_t steps) {
  typename Unit::Vector sums[Unit::chains];
#pragma GCC unroll 16
  for (int c = 0; c < Unit::chains; ++c) sums[c] = Unit::start(c);  // all different, so that no two chains are one
  const auto left = Unit::left(), right = Unit::right();
  for (; steps > 0; --steps) {
#pragma GCC unroll 16
    for (int c = 0; c < Unit::chains; ++c) sums[c] = Unit::step(sums[c], left, right);
  }
  double total = 0;
#pragma GCC unroll 16
  for (int c = 0; c < Unit::chains; ++c) total += Unit::value(sums[c]);
  return total;
}

template <class Unit>
consteval ComputeLoop make_compute_loop(std::string_view arithmetic) {
  return {arithmetic, 2.0 * Unit::multiplies * Unit::chains, run_chains<Unit>};
}

/// `Simd` gives a Vector of 64-bit words and its zero, load, add, sum, store and store_past.
template <class Simd, int streams>
std::uint64_t read_lines(const std::byte* from, CacheLines lines) {
  using Vector = typename Simd::Vector;
  Vector sums[streams];
#pragma GCC unroll 8
  for (int s = 0; s < streams; ++s) sums[s] = Simd::zero();
  for (; lines.rounds > 0; --lines.rounds) {
    const std::byte* line = from;
    for (std::int64_t step = 0; step < lines.steps; ++step, line += lines.step) {
#pragma GCC unroll 8
      for (int s = 0; s < streams; ++s) {
#pragma GCC unroll 4
        for (std::int64_t at = 0; at < line_bytes; at += sizeof(Vector)) {
          sums[s] = Simd::add(sums[s], Simd::load(line + s * lines.distance + at));
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int s = 1; s < streams; ++s) sums[0] = Simd::add(sums[0], sums[s]);
  return Simd::sum(sums[0]);
}

template <class Simd, int streams, bool past>
void copy_lines(std::byte* to, const std::byte* from, CacheLines lines) {
  for (; lines.rounds > 0; --lines.rounds) {
    std::int64_t line = 0;
    for (std::int64_t step = 0; step < lines.steps; ++step, line += lines.step) {
#pragma GCC unroll 8
      for (int s = 0; s < streams; ++s) {
#pragma GCC unroll 4
        for (std::int64_t part = 0; part < line_bytes; part += sizeof(typename Simd::Vector)) {
          const std::int64_t at = line + s * lines.distance + part;
          if constexpr (past) {
            Simd::store_past(to + at, Simd::load(from + at));
          } else {
            Simd::store(to + at, Simd::load(from + at));
          }
        }
      }
    }
  }
}

template <class Simd, int streams>
consteval MemoryLoop make_memory_loop() {
  return {streams, read_lines<Simd, streams>, copy_lines<Simd, streams, false>, copy_lines<Simd, streams, true>};
}

template <class Simd>
consteval MemoryLoops make_memory_loops() {
  return {make_memory_loop<Simd, 1>(), make_memory_loop<Simd, 4>(), make_memory_loop<Simd, 8>()};
}

}  // namespace rlx::cpu
