#include <arm_neon.h>

#include "backends/cpu/gemm/micro_kernels/tables.h"
#include "backends/cpu/gemm/micro_kernels/tile.h"

namespace rlx::cpu {
namespace {

/// Each lane takes two steps of depth in one instruction, which adds them up before it adds them to the sum.
struct Pairs {
  using Element = Bf16;
  using Vector = float32x4_t;
  static constexpr int lanes = 4, panel_vectors = 3, max_rows = 8;  // 24 sums, 3 of B, up to 5 of A: 32 registers

  static Vector zero() { return vdupq_n_f32(0); }
  static Vector load(const float* from) { return vld1q_f32(from); }
  static void store(float* to, Vector value) { vst1q_f32(to, value); }
  static bfloat16x8_t load_units(const std::uint32_t* from) { return vreinterpretq_bf16_u32(vld1q_u32(from)); }
  /// Not broadcast, but an element that the instruction itself repeats.
  static bfloat16x4_t broadcast(const std::uint32_t* from) { return vcreate_bf16(*from); }
  static Vector multiply_add(bfloat16x4_t a, bfloat16x8_t b, Vector sum) { return vbfdotq_lane_f32(sum, b, a, 0); }
};

}  // namespace

constexpr MicroKernel<Bf16> neon_bf16 = make_micro_kernel<Pairs>();

}  // namespace rlx::cpu
