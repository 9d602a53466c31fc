#include <immintrin.h>

#include "backends/cpu/peaks/make_loops.h"

namespace rlx::cpu {
namespace {

// As many chains as fit into 16 registers beside the constants.
struct Floats {
  using Vector = __m256;
  static constexpr int chains = 12, multiplies = 8;

  static Vector start(int chain) { return _mm256_set1_ps(static_cast<float>(chain)); }
  static Vector left() { return _mm256_set1_ps(0.5f); }
  static Vector right() { return _mm256_set1_ps(1.0f); }
  static Vector step(Vector sum, Vector scale, Vector offset) { return _mm256_fmadd_ps(sum, scale, offset); }
  static double value(Vector sum) { return static_cast<double>(_mm256_cvtss_f32(sum)); }
};

struct Doubles {
  using Vector = __m256d;
  static constexpr int chains = 12, multiplies = 4;

  static Vector start(int chain) { return _mm256_set1_pd(chain); }
  static Vector left() { return _mm256_set1_pd(0.5); }
  static Vector right() { return _mm256_set1_pd(1.0); }
  static Vector step(Vector sum, Vector scale, Vector offset) { return _mm256_fmadd_pd(sum, scale, offset); }
  static double value(Vector sum) { return _mm256_cvtsd_f64(sum); }
};

struct Words {
  using Vector = __m256i;

  static Vector zero() { return _mm256_setzero_si256(); }
  static Vector load(const std::byte* from) { return _mm256_load_si256(reinterpret_cast<const Vector*>(from)); }
  static Vector add(Vector a, Vector b) { return _mm256_add_epi64(a, b); }
  static std::uint64_t sum(Vector value) {
    std::uint64_t words[4], total = 0;
    _mm256_storeu_si256(reinterpret_cast<Vector*>(words), value);
    for (std::uint64_t word : words) total += word;
    return total;
  }
  static void store(std::byte* to, Vector value) { _mm256_store_si256(reinterpret_cast<Vector*>(to), value); }
  static void store_past(std::byte* to, Vector value) { _mm256_stream_si256(reinterpret_cast<Vector*>(to), value); }
};

}  // namespace

constexpr ComputeLoop avx2_f32_loop = make_compute_loop<Floats>("f32");
constexpr ComputeLoop avx2_f64_loop = make_compute_loop<Doubles>("f64");
constexpr MemoryLoops avx2_memory_loops = make_memory_loops<Words>();

}  // namespace rlx::cpu
