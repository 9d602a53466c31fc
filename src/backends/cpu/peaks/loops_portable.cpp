#include "backends/cpu/peaks/make_loops.h"

namespace rlx::cpu {
namespace {

template <class T>
struct MultiplyAdd {
  typedef T Vector __attribute__((vector_size(16)));
  static constexpr int chains = 8, multiplies = sizeof(Vector) / sizeof(T);

  static Vector start(int chain) { return Vector{} + static_cast<T>(chain); }
  static Vector left() { return Vector{} + T(0.5); }
  static Vector right() { return Vector{} + T(1); }
  static Vector step(Vector sum, Vector scale, Vector offset) { return sum * scale + offset; }
  static double value(Vector sum) { return static_cast<double>(sum[0]); }
};

struct Words {
  typedef std::uint64_t Vector __attribute__((vector_size(16)));

  static Vector zero() { return Vector{}; }
  static Vector load(const std::byte* from) { return *reinterpret_cast<const Vector*>(from); }
  static Vector add(Vector a, Vector b) { return a + b; }
  static std::uint64_t sum(Vector value) { return value[0] + value[1]; }
  static void store(std::byte* to, Vector value) { *reinterpret_cast<Vector*>(to) = value; }
  static void store_past(std::byte* to, Vector value) { store(to, value); }
};

}  // namespace

constexpr ComputeLoop portable_f32_loop = make_compute_loop<MultiplyAdd<float>>("f32");
constexpr ComputeLoop portable_f64_loop = make_compute_loop<MultiplyAdd<double>>("f64");
constexpr MemoryLoops portable_memory_loops = make_memory_loops<Words>();

}  // namespace rlx::cpu
