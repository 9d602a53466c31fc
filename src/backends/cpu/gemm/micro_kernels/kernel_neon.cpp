#include <arm_neon.h>

#include "backends/cpu/gemm/micro_kernels/tables.h"
#include "backends/cpu/gemm/micro_kernels/tile.h"

namespace rlx::cpu {
namespace {

// Compilers turn a multiplication by a broadcast number into one by an element of a register, so that no instruction broadcasts.

struct Floats {
  using Element = float;
  using Vector = float32x4_t;
  static constexpr int lanes = 4, panel_vectors = 3, max_rows = 8;  // 24 sums, 3 of B, up to 5 of A: 32 registers

  static Vector zero() { return vdupq_n_f32(0); }
  static Vector load(const float* from) { return vld1q_f32(from); }
  static void store(float* to, Vector value) { vst1q_f32(to, value); }
  static Vector broadcast(const float* from) { return vld1q_dup_f32(from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return vfmaq_f32(sum, a, b); }
};

/// Floats by numbers of half precision, which are widened as they are loaded.
struct Halves : Floats {
  using Element = F16;
  static Vector load_units(const std::uint16_t* from) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))); }
};

/// Floats by bf16 numbers, which are the upper halves of floats.
struct UpperHalves : Floats {
  using Element = Bf16Weight;
  static Vector load_units(const std::uint16_t* from) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16)); }
};

struct Doubles {
  using Element = double;
  using Vector = float64x2_t;
  static constexpr int lanes = 2, panel_vectors = 3, max_rows = 8;

  static Vector zero() { return vdupq_n_f64(0); }
  static Vector load(const double* from) { return vld1q_f64(from); }
  static void store(double* to, Vector value) { vst1q_f64(to, value); }
  static Vector broadcast(const double* from) { return vld1q_dup_f64(from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return vfmaq_f64(sum, a, b); }
};

}  // namespace

constexpr MicroKernel<float> neon_f32 = make_micro_kernel<Floats>();
constexpr MicroKernel<F16> neon_f16 = make_micro_kernel<Halves>();
constexpr MicroKernel<Bf16Weight> neon_bf16_weight = make_micro_kernel<UpperHalves>();
constexpr MicroKernel<double> neon_f64 = make_micro_kernel<Doubles>();

}  // namespace rlx::cpu
