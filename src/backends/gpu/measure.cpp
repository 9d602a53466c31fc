#include "backends/gpu/measure.h"

#include <algorithm>

#include "backends/measured_kernels.h"

namespace rlx::gpu {
namespace {

constexpr std::int64_t multiply_adds = 16;  // of a position and a step, in as many independent chains as hide their latency

// In registers only.
constexpr std::string_view computing = R"(
extern "C" __global__ void rlx_computing(float* b0, const long long s0, const long long positions) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= positions) return;
  const float m = 0.999f, c = i * 1e-6f;
  float x[16];
#pragma unroll
  for (int j = 0; j < 16; ++j) x[j] = c + j;
  for (long long k = 0; k < s0; ++k) {
#pragma unroll
    for (int j = 0; j < 16; ++j) x[j] = fmaf(x[j], m, c);
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 16; ++j) sum += x[j];
  b0[i] = sum;
}
)";

constexpr std::int64_t bytes_read = 4 * 64;  // of a position
constexpr std::string_view reading = R"(
extern "C" __global__ void rlx_reading(const float* b0, float* b1, const long long positions) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= positions) return;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 64; ++k) sum += b0[k * positions + i];
  b1[i] = sum;
}
)";

constexpr std::string_view nothing = R"(
extern "C" __global__ void rlx_nothing(const long long positions) {}
)";

}  // namespace

DeviceFigures measure(const DeviceFacts& device, DeviceMemory& memory) {
  return rlx::measure(memory, {.computing = computing,
                               .multiply_adds = multiply_adds,
                               .positions = std::max<std::int64_t>(device.units, 1) * 2048,
                               .steps = 4096,
                               .reading = reading,
                               .bytes_read = bytes_read,
                               .nothing = nothing,
                               .read = std::min<std::int64_t>(device.memory / 8, 1 << 30),
                               .moved = std::min<std::int64_t>(device.memory / 8, 32 << 20)});
}

}  // namespace rlx::gpu
