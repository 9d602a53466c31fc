#include <arm_neon.h>

#include "backends/cpu/quantized/block_kernel_table.h"
#include "backends/cpu/quantized/narrow_tile.h"

namespace rlx::cpu {
namespace {

struct NeonDot {
  static constexpr int lanes = 4;
  static constexpr bool raised = false;
  typedef std::uint32_t Fours __attribute__((vector_size(16)));
  typedef std::int32_t Ints __attribute__((vector_size(16)));
  using Bytes = int8x16x2_t;
  typedef float Floats __attribute__((vector_size(16)));

  static Floats halves(const std::byte* from) { return vcvt_f32_f16(vreinterpret_f16_u64(vcreate_u64(read_as<std::uint64_t>(from)))); }
  static Ints unsigned_bytes(const std::byte* from) {
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(read_as<std::uint32_t>(from))))));
  }
  static Ints signed_bytes(const std::byte* from) { return vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(read_as<std::uint32_t>(from))))); }
  static Fours look_up(const std::int8_t (&table)[16], Fours codes) {
    return vreinterpretq_u32_s8(vqtbl1q_s8(vld1q_s8(table), vreinterpretq_u8_u32(codes)));
  }
  static Bytes bytes(const Ints (&of)[8]) {
    const auto pack = [&](int i) {
      const int16x8_t low = vcombine_s16(vmovn_s32(of[i]), vmovn_s32(of[i + 1])),
                      high = vcombine_s16(vmovn_s32(of[i + 2]), vmovn_s32(of[i + 3]));
      return vcombine_s8(vmovn_s16(low), vmovn_s16(high));
    };
    return {{pack(0), pack(4)}};
  }
  static Floats splat(float x) { return vdupq_n_f32(x); }
  static Floats multiply_add(Floats a, Floats b, Floats sum) { return vfmaq_f32(sum, a, b); }

  template <class Codes, int begin, int count>
  static Ints dot(const Fours (&weights)[8], const std::byte* x) {
    int32x4_t sum = vdupq_n_s32(0);
#pragma GCC unroll 8
    for (int j = begin; j < begin + count; ++j)
      sum = vdotq_lane_s32(sum, vreinterpretq_s8_u32(weights[j]), vcreate_s8(read_as<std::uint32_t>(x + 4 * j)), 0);
    return sum;
  }
};

}  // namespace

constinit const BlockKernelTable neon_dot_block_kernels = for_block_types<BlockKernelTable, NeonDot, NarrowKernels<NeonDot>>();

}  // namespace rlx::cpu
