#include "backends/cpu/attention/tiles/tile_kernel.h"

#include "rlx/error.h"

namespace rlx::cpu {

const AttentionKernel& attention_kernel(CpuLevel level) {
  if (level == CpuLevel::portable) return portable_attention;
#ifdef __x86_64__
  if (level == CpuLevel::avx2) return avx2_attention;
  if (level >= CpuLevel::avx512) return avx512_attention;
#elif defined(__aarch64__)
  if (level == CpuLevel::neon) return neon_attention;
#endif
  fail_internal("attention: no kernel at level {}", to_string(level));
}

const PairProducts* pair_products([[maybe_unused]] CpuLevel level) {
#ifdef __x86_64__
  if (level >= CpuLevel::avx512 && cpu_features().avx512_bf16) return &avx512bf16_attention;
#endif
  return nullptr;
}

const IntegerProducts* integer_products([[maybe_unused]] CpuLevel level) {
#ifdef __x86_64__
  if (level >= CpuLevel::avx512 && cpu_features().avx512_vnni) return &avx512vnni_attention;
#endif
  return nullptr;
}

const TileProducts* tile_products([[maybe_unused]] CpuLevel level) {
#ifdef __x86_64__
  if (level == CpuLevel::amx) return &amx_attention;
#endif
  return nullptr;
}

}  // namespace rlx::cpu
