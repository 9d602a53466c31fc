#include <immintrin.h>

#include "backends/cpu/gemm/micro_kernels/tile_config.h"
#include "backends/cpu/peaks/loops.h"

namespace rlx::cpu {
namespace {

constexpr int chains = 4;  // a tile product takes 52 cycles and one starts every 16
constexpr double tile_rows = 16, tile_cols = 16;

alignas(64) constexpr std::uint8_t operand[1024] = {1, 2, 3};  // of both kinds of products; the numbers do not matter

/// Every thread loads the configuration for itself, and gives the registers back so that its task switches stay cheap.
void begin_tiles() {
  _tile_loadconfig(&whole_tiles);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, operand, 64);
  _tile_loadd(5, operand, 64);
}

double end_tiles() {
  alignas(64) std::int32_t sums[256];
  _tile_stored(0, sums, 64);
  _tile_release();
  return sums[0];
}

double run_bf16(std::int64_t steps) {
  begin_tiles();
  for (; steps > 0; --steps) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  return end_tiles();
}

double run_int8(std::int64_t steps) {
  begin_tiles();
  for (; steps > 0; --steps) {
    _tile_dpbssd(0, 4, 5);
    _tile_dpbssd(1, 4, 5);
    _tile_dpbssd(2, 4, 5);
    _tile_dpbssd(3, 4, 5);
  }
  return end_tiles();
}

}  // namespace

constexpr ComputeLoop bf16_tile_loop{"bf16 tile", 2 * tile_rows* tile_cols * 32 * chains, run_bf16};
constexpr ComputeLoop int8_tile_loop{"int8 tile", 2 * tile_rows* tile_cols * 64 * chains, run_int8};

}  // namespace rlx::cpu
