#include "backends/cpu/gemm/micro_kernels/float_sums_avx512.h"
#include "backends/cpu/gemm/micro_kernels/tables.h"
#include "backends/cpu/gemm/micro_kernels/tile.h"
#include "backends/cpu/gemm/micro_kernels/turned_rows.h"

namespace rlx::cpu {
namespace {

struct Floats : FloatSums {
  using Element = float;
  static Vector broadcast(const float* from) { return _mm512_set1_ps(*from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }
};

/// Floats by numbers of half precision, which are widened as they are loaded.
struct Halves : Floats {
  using Element = F16;
  static Vector load_units(const std::uint16_t* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
};

/// Floats by bf16 numbers, which are the upper halves of floats.
struct UpperHalves : Floats {
  using Element = Bf16Weight;
  static Vector load_units(const std::uint16_t* from) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
};

struct Doubles {
  using Element = double;
  using Vector = __m512d;
  static constexpr int lanes = 8, panel_vectors = 2, max_rows = 14;

  static Vector zero() { return _mm512_setzero_pd(); }
  static Vector load(const double* from) { return _mm512_loadu_pd(from); }
  static void store(double* to, Vector value) { _mm512_storeu_pd(to, value); }
  static __mmask8 mask(std::int64_t count) { return first_lanes<__mmask8>(count, lanes); }
  static Vector load(const double* from, __mmask8 mask) { return _mm512_maskz_loadu_pd(mask, from); }
  static void store(double* to, Vector value, __mmask8 mask) { _mm512_mask_storeu_pd(to, mask, value); }
  static Vector broadcast(const double* from) { return _mm512_set1_pd(*from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm512_fmadd_pd(a, b, sum); }
};

}  // namespace

constexpr MicroKernel<float> avx512_f32 = with_few_columns<Floats>(make_micro_kernel<Floats>());
constexpr MicroKernel<F16> avx512_f16 = make_micro_kernel<Halves>();
constexpr MicroKernel<Bf16Weight> avx512_bf16_weight = make_micro_kernel<UpperHalves>();
constexpr MicroKernel<double> avx512_f64 = make_micro_kernel<Doubles>();

}  // namespace rlx::cpu
