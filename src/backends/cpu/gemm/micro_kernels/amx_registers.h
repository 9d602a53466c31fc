#pragma once
#include <cstdint>
#include <type_traits>

#include "backends/cpu/gemm/micro_kernels/panel_format.h"
#include "backends/cpu/gemm/micro_kernels/tile_config.h"

namespace rlx::cpu {

/// AMX's registers, for files that are compiled for level amx. Assembler in place of GCC's intrinsics, which take numbers of tiles as
/// literals only, no arguments of templates, and do not say which memory they read.
struct AmxRegisters {
  static void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
  static void release() { asm volatile("tilerelease"); }
  template <int tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <int tile>
  static void load(const void* from, std::int64_t row_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(tile) : "memory");
  }
  template <int tile>
  static void store(void* to, std::int64_t row_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "i"(tile) : "memory");
  }
  template <class T, int c, int a, int b>
  static void multiply_add() {
    if constexpr (std::is_same_v<T, Bf16>) asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
    else asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
};

}  // namespace rlx::cpu
