#include <immintrin.h>

#include "backends/cpu/gemm/micro_kernels/tables.h"
#include "backends/cpu/gemm/micro_kernels/tile.h"
#include "backends/cpu/gemm/micro_kernels/turned_rows.h"

namespace rlx::cpu {
namespace {

/// Four steps of depth in one instruction, which takes the left side unsigned.
struct Quads {
  using Element = std::int8_t;
  using Vector = __m512i;
  static constexpr int lanes = 16, panel_vectors = 2, max_rows = 14;
  static constexpr bool raised = true;

  static Vector raise(Vector units) { return _mm512_xor_si512(units, _mm512_set1_epi8(-128)); }
  static Vector zero() { return _mm512_setzero_si512(); }
  static Vector load(const std::int32_t* from) { return _mm512_loadu_si512(from); }
  static void store(std::int32_t* to, Vector value) { _mm512_storeu_si512(to, value); }
  static __mmask16 mask(std::int64_t count) { return first_lanes<__mmask16>(count, lanes); }
  static Vector load(const std::int32_t* from, __mmask16 mask) { return _mm512_maskz_loadu_epi32(mask, from); }
  static void store(std::int32_t* to, Vector value, __mmask16 mask) { _mm512_mask_storeu_epi32(to, mask, value); }
  static Vector load_units(const std::uint32_t* from) { return _mm512_loadu_si512(from); }
  static Vector broadcast(const std::uint32_t* from) { return _mm512_set1_epi32(static_cast<int>(*from)); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm512_dpbusd_epi32(sum, a, b); }
};

}  // namespace

constexpr MicroKernel<std::int8_t> avx512_vnni = with_dots<Quads>(with_few_columns<Quads>(make_micro_kernel<Quads>()));

}  // namespace rlx::cpu
