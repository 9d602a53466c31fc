#include <arm_neon.h>

#include "backends/cpu/gemm/micro_kernels/tables.h"
#include "backends/cpu/gemm/micro_kernels/tile.h"

namespace rlx::cpu {
namespace {

/// Four steps of depth in one instruction, which takes both sides signed.
struct Quads {
  using Element = std::int8_t;
  using Vector = int32x4_t;
  static constexpr int lanes = 4, panel_vectors = 3, max_rows = 8;  // 24 sums, 3 of B, up to 5 of A: 32 registers

  static Vector zero() { return vdupq_n_s32(0); }
  static Vector load(const std::int32_t* from) { return vld1q_s32(from); }
  static void store(std::int32_t* to, Vector value) { vst1q_s32(to, value); }
  static int8x16_t load_units(const std::uint32_t* from) { return vreinterpretq_s8_u32(vld1q_u32(from)); }
  /// Not broadcast, but an element that the instruction itself repeats.
  static int8x8_t broadcast(const std::uint32_t* from) { return vcreate_s8(*from); }
  static Vector multiply_add(int8x8_t a, int8x16_t b, Vector sum) { return vdotq_lane_s32(sum, b, a, 0); }
};

}  // namespace

constexpr MicroKernel<std::int8_t> neon_dot = make_micro_kernel<Quads>();

}  // namespace rlx::cpu
