#include <immintrin.h>

#include "backends/cpu/quantized/block_kernel_table.h"
#include "backends/cpu/quantized/narrow_tile.h"

namespace rlx::cpu {
namespace {

struct Avx2 {
  static constexpr int lanes = 8;
  static constexpr bool raised = false;
  typedef std::uint32_t Fours __attribute__((vector_size(32)));
  typedef std::int32_t Ints __attribute__((vector_size(32)));
  using Bytes = __m256i;
  typedef float Floats __attribute__((vector_size(32)));

  static Floats halves(const std::byte* from) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }
  static Ints unsigned_bytes(const std::byte* from) {
    return reinterpret_cast<Ints>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  static Ints signed_bytes(const std::byte* from) {
    return reinterpret_cast<Ints>(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  static Fours look_up(const std::int8_t (&table)[16], Fours codes) {
    const __m256i numbers = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    return reinterpret_cast<Fours>(_mm256_shuffle_epi8(numbers, reinterpret_cast<__m256i>(codes)));
  }
  static Bytes bytes(const Ints (&of)[4]) {
    const auto pack = [&](int i) { return _mm256_packs_epi32(reinterpret_cast<__m256i>(of[i]), reinterpret_cast<__m256i>(of[i + 1])); };
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(pack(0), pack(2)), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  static Floats splat(float x) { return _mm256_set1_ps(x); }
  static Floats multiply_add(Floats a, Floats b, Floats sum) { return _mm256_fmadd_ps(a, b, sum); }

  /// Pairs of products of bytes, the first unsigned. Where codes have a sign, it goes to x.
  template <class Codes>
  static __m256i pairs(__m256i weights, const std::byte* x) {
    const __m256i four = _mm256_set1_epi32(read_as<std::int32_t>(x));
    if constexpr (Codes::with_sign) return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(four, weights));
    else return _mm256_maddubs_epi16(weights, four);
  }

  template <class Codes, int begin, int count>
  static Ints dot(const Fours (&weights)[8], const std::byte* x) {
    // So many pairs add up in 16 bits: x has codes up to 127.
    constexpr int together = 32767 / (2 * 127 * Codes::most);
    static_assert(together >= 1);
    __m256i sum = _mm256_setzero_si256(), some = sum;
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      const __m256i more = pairs<Codes>(reinterpret_cast<__m256i>(weights[begin + i]), x + 4 * (begin + i));
      some = i % together == 0 ? more : _mm256_add_epi16(some, more);
      if (i % together == together - 1 || i == count - 1) sum = _mm256_add_epi32(sum, _mm256_madd_epi16(some, _mm256_set1_epi16(1)));
    }
    return reinterpret_cast<Ints>(sum);
  }
};

}  // namespace

constinit const BlockKernelTable avx2_block_kernels = for_block_types<BlockKernelTable, Avx2, NarrowKernels<Avx2>>();

}  // namespace rlx::cpu
