#include "backends/cpu/gemm/tables.h"
#include "backends/cpu/gemm/tile.h"

namespace rlx::cpu {
namespace {

/// 128-bit vectors by the compiler's own extension: SSE2 on x86-64, NEON on ARM, plain code elsewhere.
template <class T>
struct Simd128 {
  using Element = T;
  typedef T Vector __attribute__((vector_size(16)));
  typedef T Unaligned __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  static constexpr int lanes = 16 / sizeof(T), panel_vectors = 2, max_rows = 6;  // 12 sums, 2 of B, 1 of A: 16 registers at least

  static Vector zero() { return Vector{}; }
  static Vector load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(T* to, Vector value) { *reinterpret_cast<Unaligned*>(to) = value; }
  static Vector broadcast(const T* from) { return Vector{} + *from; }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return a * b + sum; }
};

}  // namespace

constexpr MicroKernel<float> portable_f32 = make_micro_kernel<Simd128<float>>();
constexpr MicroKernel<double> portable_f64 = make_micro_kernel<Simd128<double>>();

}  // namespace rlx::cpu
