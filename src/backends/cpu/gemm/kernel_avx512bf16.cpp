#include <immintrin.h>

#include "backends/cpu/gemm/tables.h"
#include "backends/cpu/gemm/tile.h"
#include "backends/cpu/gemm/turned_rows.h"

namespace rlx::cpu {
namespace {

/// Each lane takes two steps of depth in one instruction, the later first.
struct Pairs {
  using Element = Bf16;
  using Vector = __m512;
  static constexpr int lanes = 16, panel_vectors = 2, max_rows = 14;

  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
  static __mmask16 mask(std::int64_t count) { return first_lanes<__mmask16>(count, lanes); }
  static Vector load(const float* from, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, from); }
  static void store(float* to, Vector value, __mmask16 mask) { _mm512_mask_storeu_ps(to, mask, value); }
  static __m512i load_units(const std::uint32_t* from) { return _mm512_loadu_si512(from); }
  static __m512i broadcast(const std::uint32_t* from) { return _mm512_set1_epi32(static_cast<int>(*from)); }
  static Vector multiply_add(__m512i a, __m512i b, Vector sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

}  // namespace

constexpr MicroKernel<Bf16> avx512_bf16 = with_few_columns<Pairs>(make_micro_kernel<Pairs>());

}  // namespace rlx::cpu
