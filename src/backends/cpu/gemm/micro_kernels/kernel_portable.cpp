#include "backends/cpu/gemm/micro_kernels/tables.h"
#include "backends/cpu/gemm/micro_kernels/tile.h"
#include "backends/cpu/machine/portable_vectors.h"

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

/// Floats by bf16 numbers, which are the upper halves of floats. Numbers of half precision take too long to widen here.
struct UpperHalves : Simd128<float> {
  using Element = Bf16Weight;
  static Vector load_units(const std::uint16_t* from) { return widened_upper_halves(from); }
};

/// Four steps of depth.
struct Bytes {
  using Element = std::int8_t;
  using Vector = Ints32x4;
  typedef Ints32x4 Unaligned __attribute__((aligned(4), may_alias));
  typedef Units32x4 UnalignedUnits __attribute__((aligned(4), may_alias));
  static constexpr int lanes = 4, panel_vectors = 2, max_rows = 4;  // 8 sums, 4 of B, 2 of A: 14 of 16 registers

  static Vector zero() { return Vector{}; }
  static Vector load(const std::int32_t* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(std::int32_t* to, Vector value) { *reinterpret_cast<Unaligned*>(to) = value; }
  static FourBytes load_units(const std::uint32_t* from) { return four_bytes(*reinterpret_cast<const UnalignedUnits*>(from)); }
  static FourBytes broadcast(const std::uint32_t* from) { return four_bytes(Units32x4{} + *from); }
  static Vector multiply_add(const FourBytes& a, const FourBytes& b, Vector sum) { return add_products(a, b, sum); }
};

}  // namespace

constexpr MicroKernel<float> portable_f32 = make_micro_kernel<Simd128<float>>();
constexpr MicroKernel<double> portable_f64 = make_micro_kernel<Simd128<double>>();
constexpr MicroKernel<Bf16Weight> portable_bf16_weight = make_micro_kernel<UpperHalves>();
constexpr MicroKernel<std::int8_t> portable_i8 = make_micro_kernel<Bytes>();

}  // namespace rlx::cpu
