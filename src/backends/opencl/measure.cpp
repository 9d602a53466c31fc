#include "backends/opencl/measure.h"

#include <algorithm>

#include "backends/measured_kernels.h"

namespace rlx::opencl {
namespace {

constexpr std::int64_t multiply_adds = 8 * 16;  // of a position and a step, in as many independent chains as hide their latency

// In registers only.
constexpr std::string_view computing = R"(
__kernel void rlx_computing(__global float* b0, const long o0, const long s0, const long positions) {
  const long i = get_global_id(0);
  if (i >= positions) return;
  const float16 m = (float16)(0.999f), c = (float16)(i * 1e-6f);
  float16 x0 = c, x1 = c + 1, x2 = c + 2, x3 = c + 3, x4 = c + 4, x5 = c + 5, x6 = c + 6, x7 = c + 7;
  for (long k = 0; k < s0; ++k) {
    x0 = x0 * m + c, x1 = x1 * m + c, x2 = x2 * m + c, x3 = x3 * m + c;
    x4 = x4 * m + c, x5 = x5 * m + c, x6 = x6 * m + c, x7 = x7 * m + c;
  }
  const float16 x = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
  b0[o0 + i] = x.s0 + x.s1 + x.s2 + x.s3 + x.s4 + x.s5 + x.s6 + x.s7 + x.s8 + x.s9 + x.sa + x.sb + x.sc + x.sd + x.se + x.sf;
}
)";

constexpr std::int64_t bytes_read = 16 * 16 * 4;  // of a position
constexpr std::string_view reading = R"(
__kernel void rlx_reading(__global const float* b0, const long o0, __global float* b1, const long o1, const long positions) {
  const long i = get_global_id(0);
  if (i >= positions) return;
  float16 x = (float16)(0);
  for (int k = 0; k < 16; ++k) x += vload16(i * 16 + k, b0 + o0);
  b1[o1 + i] = x.s0 + x.s1 + x.s2 + x.s3 + x.s4 + x.s5 + x.s6 + x.s7 + x.s8 + x.s9 + x.sa + x.sb + x.sc + x.sd + x.se + x.sf;
}
)";

constexpr std::string_view nothing = R"(
__kernel void rlx_nothing(const long positions) {}
)";

}  // namespace

DeviceFigures measure(const DeviceFacts& device, DeviceMemory& memory) {
  const std::int64_t most = std::min(device.largest_buffer, device.memory / 8);
  return rlx::measure(memory, {.computing = computing,
                               .multiply_adds = multiply_adds,
                               .positions = std::max<std::int64_t>(device.units, 1) * 2048,
                               .steps = device.is_cpu ? 256 : 4096,
                               .reading = reading,
                               .bytes_read = bytes_read,
                               .nothing = nothing,
                               .read = std::min<std::int64_t>(most, 256 << 20),
                               .moved = std::min<std::int64_t>(most, 32 << 20)});
}

}  // namespace rlx::opencl
