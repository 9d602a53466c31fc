#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace rlx::cpu {
namespace {

/// A whole panel side by side; see block_codes.h.
struct Avx512 {
  static constexpr int lanes = 16;
  static constexpr bool raised = true;
  typedef std::uint32_t Fours __attribute__((vector_size(64)));
  typedef std::int32_t Ints __attribute__((vector_size(64)));
  typedef float Floats __attribute__((vector_size(64)));

  static Floats halves(const std::byte* from) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))); }
  static Ints unsigned_bytes(const std::byte* from) {
    return reinterpret_cast<Ints>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static Ints signed_bytes(const std::byte* from) {
    return reinterpret_cast<Ints>(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static Fours look_up(const std::int8_t (&table)[16], Fours codes) {
    const __m128i numbers = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)), _mm_set1_epi8(-128));
    return reinterpret_cast<Fours>(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(numbers), reinterpret_cast<__m512i>(codes)));
  }
};

}  // namespace
}  // namespace rlx::cpu
