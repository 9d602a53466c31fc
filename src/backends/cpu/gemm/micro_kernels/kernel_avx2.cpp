#include <immintrin.h>

#include "backends/cpu/gemm/micro_kernels/tables.h"
#include "backends/cpu/gemm/micro_kernels/tile.h"

namespace rlx::cpu {
namespace {

struct Floats {
  using Element = float;
  using Vector = __m256;
  static constexpr int lanes = 8, panel_vectors = 2, max_rows = 6;  // 12 sums, 2 of B, 1 of A: 15 of 16 registers

  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
  static Vector broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }
};

/// Floats by numbers of half precision, which are widened as they are loaded.
struct HalfFloats : Floats {
  using Element = F16;
  static Vector load_units(const std::uint16_t* from) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }
};

/// Floats by bf16 numbers, which are the upper halves of floats.
struct UpperHalves : Floats {
  using Element = Bf16Weight;
  static Vector load_units(const std::uint16_t* from) {
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
};

struct Doubles {
  using Element = double;
  using Vector = __m256d;
  static constexpr int lanes = 4, panel_vectors = 2, max_rows = 6;

  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector load(const double* from) { return _mm256_loadu_pd(from); }
  static void store(double* to, Vector value) { _mm256_storeu_pd(to, value); }
  static Vector broadcast(const double* from) { return _mm256_broadcast_sd(from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm256_fmadd_pd(a, b, sum); }
};

/// Four steps of depth: bytes are taken apart into 16-bit numbers, the even and the odd ones, whose products are summed in pairs.
struct Bytes {
  using Element = std::int8_t;
  using Vector = __m256i;
  static constexpr int lanes = 8, panel_vectors = 1, max_rows = 6;
  struct Halves {
    __m256i even, odd;
  };

  static Vector zero() { return _mm256_setzero_si256(); }
  static Vector load(const std::int32_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
  static void store(std::int32_t* to, Vector value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value); }
  static Halves halves(__m256i bytes) { return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)}; }
  static Halves load_units(const std::uint32_t* from) { return halves(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))); }
  static Halves broadcast(const std::uint32_t* from) { return halves(_mm256_set1_epi32(static_cast<int>(*from))); }
  static Vector multiply_add(const Halves& a, const Halves& b, Vector sum) {
    return _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_madd_epi16(a.even, b.even), _mm256_madd_epi16(a.odd, b.odd)));
  }
};

}  // namespace

constexpr MicroKernel<float> avx2_f32 = make_micro_kernel<Floats>();
constexpr MicroKernel<F16> avx2_f16 = make_micro_kernel<HalfFloats>();
constexpr MicroKernel<Bf16Weight> avx2_bf16_weight = make_micro_kernel<UpperHalves>();
constexpr MicroKernel<double> avx2_f64 = make_micro_kernel<Doubles>();
constexpr MicroKernel<std::int8_t> avx2_i8 = with_dots<Bytes>(make_micro_kernel<Bytes>());

}  // namespace rlx::cpu
