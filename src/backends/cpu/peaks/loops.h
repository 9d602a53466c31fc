#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

// The loops whose speed is the limit of a machine. Each file that defines some is compiled for one instruction set.

namespace rlx::cpu {

/// Multiply-adds in registers only, in enough independent chains to hide their latency.
struct ComputeLoop {
  std::string_view arithmetic;     // "f32", "f64"; "bf16 dot", "int8 dot": sums of products in wider elements; "bf16 tile", "int8 tile"
  double operations_per_step = 0;  // a multiply-add counts as two
  double (*run)(std::int64_t steps) = nullptr;  // the result has no meaning, but for the optimizer
};

/// The cache lines that a memory loop touches, `rounds` times all: in each of `steps` steps one of every stream. A stream goes on by `step`
/// bytes; the streams start `distance` bytes apart.
struct CacheLines {
  std::int64_t rounds = 1, steps = 0, step = 0, distance = 0;
};

/// Streams are read side by side so that several prefetchers are busy, and with a sum for each, so that no sum waits for another.
struct MemoryLoop {
  int streams = 0;
  std::uint64_t (*read)(const std::byte* from, CacheLines lines) = nullptr;        // the sum of all words of 64 bits, in every round again
  void (*copy)(std::byte* to, const std::byte* from, CacheLines lines) = nullptr;  // both on a 64-byte boundary
  void (*copy_past)(std::byte* to, const std::byte* from, CacheLines lines) = nullptr;  // the same; what it writes goes past the caches
};

inline constexpr std::int64_t line_bytes = 64;

using MemoryLoops = std::array<MemoryLoop, 3>;  // of 1, 4 and 8 streams

extern const ComputeLoop portable_f32_loop, portable_f64_loop;
extern const MemoryLoops portable_memory_loops;
#ifdef __x86_64__
extern const ComputeLoop avx2_f32_loop, avx2_f64_loop;
extern const MemoryLoops avx2_memory_loops;
extern const ComputeLoop avx512_f32_loop, avx512_f64_loop;
extern const ComputeLoop bf16_dot_loop, int8_dot_loop;  // need avx512_bf16 and avx512_vnni
extern const MemoryLoops avx512_memory_loops;
extern const ComputeLoop bf16_tile_loop, int8_tile_loop;  // need level amx
#elif defined(__aarch64__)
extern const ComputeLoop neon_f32_loop, neon_f64_loop;
extern const ComputeLoop neon_bf16_loop, neon_int8_loop;  // need neon_bf16 and neon_dot
#endif

}  // namespace rlx::cpu
