#include <immintrin.h>

#include "backends/cpu/peaks/make_loops.h"

namespace rlx::cpu {
namespace {

constexpr int most_chains = 16;  // hides a latency of up to 8 cycles on two units

struct Floats {
  using Vector = __m512;
  static constexpr int chains = most_chains, multiplies = 16;

  static Vector start(int chain) { return _mm512_set1_ps(static_cast<float>(chain)); }
  static Vector left() { return _mm512_set1_ps(0.5f); }
  static Vector right() { return _mm512_set1_ps(1.0f); }
  static Vector step(Vector sum, Vector scale, Vector offset) { return _mm512_fmadd_ps(sum, scale, offset); }
  static double value(Vector sum) { return static_cast<double>(_mm512_cvtss_f32(sum)); }
};

struct Doubles {
  using Vector = __m512d;
  static constexpr int chains = most_chains, multiplies = 8;

  static Vector start(int chain) { return _mm512_set1_pd(chain); }
  static Vector left() { return _mm512_set1_pd(0.5); }
  static Vector right() { return _mm512_set1_pd(1.0); }
  static Vector step(Vector sum, Vector scale, Vector offset) { return _mm512_fmadd_pd(sum, scale, offset); }
  static double value(Vector sum) { return _mm512_cvtsd_f64(sum); }
};

// Written as assembler, as this file may not let the compiler use these instructions elsewhere: they have CPUID bits of their own.
struct Bf16Dots {
  using Vector = __m512;
  static constexpr int chains = most_chains, multiplies = 32;

  static Vector start(int chain) { return Floats::start(chain); }
  static __m512i left() { return _mm512_set1_epi16(0x3f80); }  // 1
  static __m512i right() { return _mm512_set1_epi16(0x3f80); }
  static Vector step(Vector sum, __m512i a, __m512i b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static double value(Vector sum) { return Floats::value(sum); }
};

struct Int8Dots {
  using Vector = __m512i;
  static constexpr int chains = most_chains, multiplies = 64;

  static Vector start(int chain) { return _mm512_set1_epi32(chain); }
  static Vector left() { return _mm512_set1_epi8(3); }
  static Vector right() { return _mm512_set1_epi8(-2); }
  static Vector step(Vector sum, Vector a, Vector b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static double value(Vector sum) { return _mm_cvtsi128_si32(_mm512_castsi512_si128(sum)); }
};

struct Words {
  using Vector = __m512i;

  static Vector zero() { return _mm512_setzero_si512(); }
  static Vector load(const std::byte* from) { return _mm512_load_si512(from); }
  static Vector add(Vector a, Vector b) { return _mm512_add_epi64(a, b); }
  static std::uint64_t sum(Vector value) {
    std::uint64_t words[8], total = 0;
    _mm512_storeu_si512(words, value);
    for (std::uint64_t word : words) total += word;
    return total;
  }
  static void store(std::byte* to, Vector value) { _mm512_store_si512(to, value); }
  static void store_past(std::byte* to, Vector value) { _mm512_stream_si512(reinterpret_cast<Vector*>(to), value); }
};

}  // namespace

constexpr ComputeLoop avx512_f32_loop = make_compute_loop<Floats>("f32");
constexpr ComputeLoop avx512_f64_loop = make_compute_loop<Doubles>("f64");
constexpr ComputeLoop bf16_dot_loop = make_compute_loop<Bf16Dots>("bf16 dot");
constexpr ComputeLoop int8_dot_loop = make_compute_loop<Int8Dots>("int8 dot");
constexpr MemoryLoops avx512_memory_loops = make_memory_loops<Words>();

}  // namespace rlx::cpu
