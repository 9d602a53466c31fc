#include "backends/cpu/gemm/pack.h"

#include <algorithm>

namespace rlx::cpu {
namespace {

// Lanes are read one after the other, each along its depth: so many steps at a time that the part of the panel they go to stays in L1.
constexpr std::int64_t depth_block = 64;

template <class T>
void pack_any(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, T* to, std::int64_t width) {
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    for (std::int64_t k = 0; k < depth; ++k) to[k * width + lane] = from.data[lane * from.lane_stride + k * from.depth_stride];
  }
}

/// Lanes side by side in memory: every step is a copy.
template <class T>
void pack_rows(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, T* to, std::int64_t width) {
  for (std::int64_t k = 0; k < depth; ++k) std::copy_n(from.data + k * from.depth_stride, lanes, to + k * width);
}

/// Steps side by side in memory: a transposition, by squares of 4 that stay in registers. Expects 4 lanes or more; where their number is no
/// multiple of 4, the last squares overlap, which is faster than single values.
template <class T>
void pack_columns(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, T* to, std::int64_t width) {
  typedef T Square __attribute__((vector_size(4 * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
  const std::int64_t lane_stride = from.lane_stride;
  const std::int64_t square_depth = depth / 4 * 4;
  for (std::int64_t next = 0; next < lanes; next += 4) {
    const std::int64_t lane = std::min(next, lanes - 4);
    for (std::int64_t k = 0; k < square_depth; k += 4) {
      const T* source = from.data + lane * lane_stride + k;
      const Square a = *reinterpret_cast<const Unaligned*>(source), b = *reinterpret_cast<const Unaligned*>(source + lane_stride);
      const Square c = *reinterpret_cast<const Unaligned*>(source + 2 * lane_stride);
      const Square d = *reinterpret_cast<const Unaligned*>(source + 3 * lane_stride);
      const Square ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Square cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      T* target = to + k * width + lane;
      *reinterpret_cast<Unaligned*>(target) = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
      *reinterpret_cast<Unaligned*>(target + width) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
      *reinterpret_cast<Unaligned*>(target + 2 * width) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
      *reinterpret_cast<Unaligned*>(target + 3 * width) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
  }
  pack_any({from.data + square_depth, lane_stride, 1}, lanes, depth - square_depth, to + square_depth * width, width);
}

}  // namespace

template <class T>
void pack_panel(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, T* to, std::int64_t width) {
  for (std::int64_t k = 0; k < depth; k += depth_block) {
    const std::int64_t steps = std::min(depth_block, depth - k);
    const Strided<T> source{from.data + k * from.depth_stride, from.lane_stride, from.depth_stride};
    T* target = to + k * width;
    if (from.lane_stride == 1) {
      pack_rows(source, lanes, steps, target, width);
    } else if (from.depth_stride == 1 && lanes >= 4) {
      pack_columns(source, lanes, steps, target, width);
    } else {
      pack_any(source, lanes, steps, target, width);
    }
    if (lanes == width) continue;
    for (std::int64_t step = 0; step < steps; ++step) std::fill(target + step * width + lanes, target + (step + 1) * width, T{0});
  }
}

template void pack_panel(const Strided<float>&, std::int64_t, std::int64_t, float*, std::int64_t);
template void pack_panel(const Strided<double>&, std::int64_t, std::int64_t, double*, std::int64_t);

}  // namespace rlx::cpu
