#include <arm_neon.h>

#include "backends/cpu/peaks/make_loops.h"

namespace rlx::cpu {
namespace {

constexpr int most_chains = 16;  // hides a latency of 4 cycles on four units

struct Floats {
  using Vector = float32x4_t;
  static constexpr int chains = most_chains, multiplies = 4;

  static Vector start(int chain) { return vdupq_n_f32(static_cast<float>(chain)); }
  static Vector left() { return vdupq_n_f32(0.5f); }
  static Vector right() { return vdupq_n_f32(1.0f); }
  static Vector step(Vector sum, Vector a, Vector b) { return vfmaq_f32(sum, a, b); }
  static double value(Vector sum) { return static_cast<double>(vgetq_lane_f32(sum, 0)); }
};

struct Doubles {
  using Vector = float64x2_t;
  static constexpr int chains = most_chains, multiplies = 2;

  static Vector start(int chain) { return vdupq_n_f64(chain); }
  static Vector left() { return vdupq_n_f64(0.5); }
  static Vector right() { return vdupq_n_f64(1.0); }
  static Vector step(Vector sum, Vector a, Vector b) { return vfmaq_f64(sum, a, b); }
  static double value(Vector sum) { return vgetq_lane_f64(sum, 0); }
};

struct Bf16Dots {
  using Vector = float32x4_t;
  static constexpr int chains = most_chains, multiplies = 8;

  static Vector start(int chain) { return Floats::start(chain); }
  static uint16x8_t left() { return vdupq_n_u16(0x3f00); }   // 0.5
  static uint16x8_t right() { return vdupq_n_u16(0x3f80); }  // 1
  static Vector step(Vector sum, uint16x8_t a, uint16x8_t b) {
    asm(".arch armv8.2-a+bf16\n\tbfdot %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b));
    return sum;
  }
  static double value(Vector sum) { return Floats::value(sum); }
};

struct Int8Dots {
  using Vector = int32x4_t;
  static constexpr int chains = most_chains, multiplies = 16;

  static Vector start(int chain) { return vdupq_n_s32(chain); }
  static int8x16_t left() { return vdupq_n_s8(3); }
  static int8x16_t right() { return vdupq_n_s8(-2); }
  static Vector step(Vector sum, int8x16_t a, int8x16_t b) {
    asm(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
    return sum;
  }
  static double value(Vector sum) { return vgetq_lane_s32(sum, 0); }
};

}  // namespace

constexpr ComputeLoop neon_f32_loop = make_compute_loop<Floats>("f32");
constexpr ComputeLoop neon_f64_loop = make_compute_loop<Doubles>("f64");
constexpr ComputeLoop neon_bf16_loop = make_compute_loop<Bf16Dots>("bf16 dot");
constexpr ComputeLoop neon_int8_loop = make_compute_loop<Int8Dots>("int8 dot");

}  // namespace rlx::cpu
