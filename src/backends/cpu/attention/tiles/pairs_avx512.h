#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "backends/cpu/gemm/micro_kernels/tile.h"

namespace rlx::cpu {
namespace {

constexpr int vector_lanes = 16, max_rows = 14;  // with 2 vectors: 28 sums, 2 of B, 1 of A: 31 of 32 registers

/// sums += A * B, whose units of 32 bits are two steps of depth: `left(unit)` says where the rows of A are: SideBySide or Apart. `Pairs`
/// multiplies them.
template <class Pairs, int vectors, int rows, class Left>
[[gnu::always_inline]] inline void multiply_pairs(std::int64_t units, const Left& left, const std::uint32_t* b,
                                                  typename Pairs::Sums (&sums)[rows][vectors]) {
  for (std::int64_t unit = 0; unit < units; ++unit, b += vectors * vector_lanes) {
    const auto a = left(unit);
    __m512i right[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) right[v] = _mm512_loadu_si512(b + v * vector_lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      std::int32_t bits;  // keys may begin anywhere
      std::memcpy(&bits, a.row(r), sizeof bits);
      const __m512i one = _mm512_set1_epi32(bits);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sums[r][v] = Pairs::add(sums[r][v], one, right[v]);
    }
  }
}

}  // namespace
}  // namespace rlx::cpu
