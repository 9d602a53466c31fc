#include <arm_neon.h>

#include "backends/cpu/attention/tiles/tile_code.h"

namespace rlx::cpu {
namespace {

struct Floats {
  using Vector = float32x4_t;
  static constexpr int lanes = 4, max_rows = 12;  // with 2 vectors: 24 sums, 2 of B, up to 6 of A: 32 registers
  static constexpr int few = 4, few_vectors = 4;  // with 4 rows: 16 sums
  static constexpr float lowest = -127;           // the exponent field of 0

  static Vector load(const float* from) { return vld1q_f32(from); }
  static void store(float* to, Vector value) { vst1q_f32(to, value); }
  static Vector load_half(const void* from) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(static_cast<const std::uint16_t*>(from))));
  }
  static Vector load_bytes(const void* from) {
    std::uint32_t bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(bytes)))));
  }
  static Vector broadcast(const float* from) { return vld1q_dup_f32(from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return vfmaq_f32(sum, a, b); }
  static Vector max(Vector a, Vector b) { return vmaxq_f32(a, b); }  // NaN where one is NaN
  static float sum(Vector x) { return vpadds_f32(vadd_f32(vget_low_f32(x), vget_high_f32(x))); }
  static Vector round(Vector x) { return vrndnq_f32(x); }
  static Vector times_power_of_two(Vector x, Vector exponent) {
    const int32x4_t field = vaddq_s32(vcvtq_s32_f32(exponent), vdupq_n_s32(127));
    return x * vreinterpretq_f32_s32(vshlq_n_s32(field, 23));
  }
};

}  // namespace

constexpr AttentionKernel neon_attention = make_attention_kernel<Floats>();

}  // namespace rlx::cpu
