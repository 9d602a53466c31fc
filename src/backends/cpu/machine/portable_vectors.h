#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

// What kernels for narrow numbers share where a CPU has 128-bit vectors and nothing more: SSE2 on x86-64, NEON on ARM, plain code
// elsewhere.

namespace rlx::cpu {
namespace {

typedef std::uint16_t Units16x4 __attribute__((vector_size(8)));
typedef std::uint32_t Units32x4 __attribute__((vector_size(16)));
typedef std::int32_t Ints32x4 __attribute__((vector_size(16)));
typedef float Floats32x4 __attribute__((vector_size(16)));

inline Units32x4 widened_units(const void* from) {
  Units16x4 units;
  std::memcpy(&units, from, sizeof units);
  return __builtin_convertvector(units, Units32x4);
}

/// Four numbers of half precision, as f16_value has them.
inline Floats32x4 widened_halves(const void* from) {
  const Units32x4 bits = widened_units(from);
  const auto magnitude = reinterpret_cast<Ints32x4>(bits & 0x7fff);
  const Ints32x4 special = magnitude >= 0x7c00, tiny = magnitude < 0x400;
  const Ints32x4 normal = (magnitude << 13) + (112 << 23) + (special & (112 << 23));
  const auto subnormal = reinterpret_cast<Ints32x4>(__builtin_convertvector(magnitude, Floats32x4) * 0x1p-24F);
  return reinterpret_cast<Floats32x4>(reinterpret_cast<Ints32x4>((bits & 0x8000) << 16) | (tiny & subnormal) | (~tiny & normal));
}

/// Four numbers of bf16.
inline Floats32x4 widened_upper_halves(const void* from) { return reinterpret_cast<Floats32x4>(widened_units(from) << 16); }

/// Bytes with a sign in fours, as their products are computed: those at even and at odd places in 16 bits, or as they are.
struct FourBytes {
#ifdef __SSE2__
  __m128i even, odd;
#else
  Ints32x4 all;
#endif
};

inline FourBytes four_bytes(Units32x4 bytes) {
#ifdef __SSE2__
  const auto all = reinterpret_cast<__m128i>(bytes);
  return {_mm_srai_epi16(_mm_slli_epi16(all, 8), 8), _mm_srai_epi16(all, 8)};
#else
  return {reinterpret_cast<Ints32x4>(bytes)};
#endif
}

/// Adds the sum of each four's products.
inline Ints32x4 add_products(const FourBytes& a, const FourBytes& b, Ints32x4 sum) {
#ifdef __SSE2__
  return sum + reinterpret_cast<Ints32x4>(_mm_add_epi32(_mm_madd_epi16(a.even, b.even), _mm_madd_epi16(a.odd, b.odd)));
#else
  return sum + ((a.all << 24) >> 24) * ((b.all << 24) >> 24) + ((a.all << 16) >> 24) * ((b.all << 16) >> 24) +
         ((a.all << 8) >> 24) * ((b.all << 8) >> 24) + (a.all >> 24) * (b.all >> 24);
#endif
}

}  // namespace
}  // namespace rlx::cpu
