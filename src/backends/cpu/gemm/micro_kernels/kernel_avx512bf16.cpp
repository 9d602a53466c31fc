#include "backends/cpu/gemm/micro_kernels/float_sums_avx512.h"
#include "backends/cpu/gemm/micro_kernels/tables.h"
#include "backends/cpu/gemm/micro_kernels/tile.h"
#include "backends/cpu/gemm/micro_kernels/turned_rows.h"

namespace rlx::cpu {
namespace {

/// Each lane takes two steps of depth in one instruction, the later first.
struct Pairs : FloatSums {
  using Element = Bf16;
  static __m512i load_units(const std::uint32_t* from) { return _mm512_loadu_si512(from); }
  static __m512i broadcast(const std::uint32_t* from) { return _mm512_set1_epi32(static_cast<int>(*from)); }
  static Vector multiply_add(__m512i a, __m512i b, Vector sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

}  // namespace

constexpr MicroKernel<Bf16> avx512_bf16 = with_dots<Pairs>(with_few_columns<Pairs>(make_micro_kernel<Pairs>()));

}  // namespace rlx::cpu
