#include "backends/metal/measure.h"

#include <algorithm>

#include "backends/measured_kernels.h"
#include "backends/metal/driver.h"

namespace rlx::metal {
namespace {

constexpr std::int64_t multiply_adds = 16;  // of a position and a step, in as many independent chains as hide their latency

// In registers only.
constexpr std::string_view computing = R"(
#include <metal_stdlib>
using namespace metal;
struct Given_rlx_computing {
  device float* b0;
  long s0, positions;
};
kernel void rlx_computing(constant Given_rlx_computing& given [[buffer(0)]], uint group [[threadgroup_position_in_grid]],
                          uint lane [[thread_position_in_threadgroup]], uint lanes [[threads_per_threadgroup]]) {
  const long i = group * (long)lanes + lane;
  if (i >= given.positions) return;
  const float m = 0.999f, c = i * 1e-6f;
  float x[16];
#pragma unroll
  for (int j = 0; j < 16; ++j) x[j] = c + j;
  for (long k = 0; k < given.s0; ++k) {
#pragma unroll
    for (int j = 0; j < 16; ++j) x[j] = fma(x[j], m, c);
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 16; ++j) sum += x[j];
  given.b0[i] = sum;
}
)";

constexpr std::int64_t bytes_read = 4 * 64;  // of a position
constexpr std::string_view reading = R"(
#include <metal_stdlib>
using namespace metal;
struct Given_rlx_reading {
  device const float* b0;
  device float* b1;
  long positions;
};
kernel void rlx_reading(constant Given_rlx_reading& given [[buffer(0)]], uint group [[threadgroup_position_in_grid]],
                        uint lane [[thread_position_in_threadgroup]], uint lanes [[threads_per_threadgroup]]) {
  const long i = group * (long)lanes + lane;
  if (i >= given.positions) return;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 64; ++k) sum += given.b0[k * given.positions + i];
  given.b1[i] = sum;
}
)";

constexpr std::string_view nothing = R"(
struct Given_rlx_nothing {
  long positions;
};
kernel void rlx_nothing(constant Given_rlx_nothing& given [[buffer(0)]], uint group [[threadgroup_position_in_grid]],
                        uint lane [[thread_position_in_threadgroup]], uint lanes [[threads_per_threadgroup]]) {}
)";

}  // namespace

DeviceFigures measure(const Gpu& gpu, DeviceMemory& memory) {
  return rlx::measure(memory, {.computing = computing,
                               .multiply_adds = multiply_adds,
                               .positions = std::int64_t{64} * 2048,
                               .steps = 4096,
                               .reading = reading,
                               .bytes_read = bytes_read,
                               .nothing = nothing,
                               .read = std::min<std::int64_t>(gpu.memory / 8, 1 << 30),
                               .moved = std::min<std::int64_t>(gpu.memory / 8, 32 << 20)});
}

}  // namespace rlx::metal
