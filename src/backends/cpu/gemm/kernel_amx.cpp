#include <type_traits>

#include "backends/cpu/gemm/matrix_tile.h"
#include "backends/cpu/gemm/tables.h"

namespace rlx::cpu {
namespace {

/// AMX's registers. Assembler in place of GCC's intrinsics, which take numbers of tiles as literals only, no arguments of templates, and do
/// not say which memory they read.
struct Registers {
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

}  // namespace

constexpr MicroKernel<Bf16> amx_bf16 = make_matrix_tile_kernel<Registers, Bf16>();
constexpr MicroKernel<std::int8_t> amx_i8 = make_matrix_tile_kernel<Registers, std::int8_t>();

}  // namespace rlx::cpu
