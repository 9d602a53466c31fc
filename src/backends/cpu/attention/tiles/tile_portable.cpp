#include "backends/cpu/attention/tiles/tile_code.h"

namespace rlx::cpu {
namespace {

/// 128-bit vectors by the compiler's own extension: SSE2 on x86-64, NEON on ARM, plain code elsewhere.
struct Floats {
  typedef float Vector __attribute__((vector_size(16)));
  typedef float Unaligned __attribute__((vector_size(16), aligned(alignof(float)), may_alias));
  typedef std::int32_t Bits __attribute__((vector_size(16)));
  static constexpr int lanes = 4, max_rows = 6;   // with 2 vectors: 12 sums, 2 of B, 1 of A: 16 registers at least
  static constexpr int few = 4, few_vectors = 2;  // with 4 rows: 8 sums
  static constexpr float lowest = -127;           // the exponent field of 0
  static constexpr float to_whole = 0x1.8p23f;    // numbers of this size have no digits behind the point

  static Vector load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(float* to, Vector value) { *reinterpret_cast<Unaligned*>(to) = value; }
  static Vector load_half(const F16* from) { return Vector{widened(from[0]), widened(from[1]), widened(from[2]), widened(from[3])}; }
  static Vector load_bytes(const std::int8_t* from) { return __builtin_convertvector(Bits{from[0], from[1], from[2], from[3]}, Vector); }
  static Vector broadcast(const float* from) { return Vector{} + *from; }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return a * b + sum; }
  static Vector max(Vector a, Vector b) { return a > b ? a : b; }  // b where one is NaN
  static float sum(Vector x) { return (x[0] + x[2]) + (x[1] + x[3]); }
  static Vector round(Vector x) { return x + to_whole - to_whole; }
  static Vector times_power_of_two(Vector x, Vector exponent) {
    const Bits field = reinterpret_cast<Bits>(exponent + (to_whole + 127));  // the sum's lowest bits are exponent + 127
    return x * reinterpret_cast<Vector>(field << 23);
  }
};

}  // namespace

constexpr AttentionKernel portable_attention = make_attention_kernel<Floats>();

}  // namespace rlx::cpu
