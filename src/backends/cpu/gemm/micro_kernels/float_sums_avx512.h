#pragma once
#include <immintrin.h>

#include <cstdint>

#include "backends/cpu/gemm/micro_kernels/tile.h"

namespace rlx::cpu {
namespace {

/// The sums of AVX-512's products in f32, whatever is multiplied.
struct FloatSums {
  using Vector = __m512;
  static constexpr int lanes = 16, panel_vectors = 2, max_rows = 14;  // 28 sums, 2 of B, 1 of A: 31 of 32 registers

  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
  static __mmask16 mask(std::int64_t count) { return first_lanes<__mmask16>(count, lanes); }
  static Vector load(const float* from, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, from); }
  static void store(float* to, Vector value, __mmask16 mask) { _mm512_mask_storeu_ps(to, mask, value); }
};

}  // namespace
}  // namespace rlx::cpu
