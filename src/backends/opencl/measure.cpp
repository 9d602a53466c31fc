#include "backends/opencl/measure.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/fastest_seconds.h"

namespace rlx::opencl {
namespace {

constexpr double budget = 0.15;                 // seconds for each figure
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

struct Bench {
  DeviceMemory& memory;
  std::unique_ptr<DeviceKernels> kernels;

  explicit Bench(DeviceMemory& on) : memory(on) {
    const std::vector<KernelText> texts{{.name = "rlx_computing", .text = std::string(computing), .element_bytes = {4}},
                                        {.name = "rlx_reading", .text = std::string(reading), .element_bytes = {4, 4}},
                                        {.name = "rlx_nothing", .text = std::string(nothing)}};
    kernels = memory.load(texts, {});
  }

  /// The least of one call of `work` with all that it asks for.
  template <class Work>
  double seconds(const Work& work) const {
    work();
    memory.finish();
    return fastest_seconds(budget, [&] {
      work();
      memory.finish();
    });
  }

  double flops(const DeviceFacts& device) const {
    const std::int64_t positions = std::max<std::int64_t>(device.units, 1) * 2048, steps = device.is_cpu ? 256 : 4096;
    const auto result = memory.allocate(4 * positions);
    const std::array buffers{result.get()};
    const double once = seconds([&] { kernels->launch(0, buffers, {&steps, 1}, positions); });
    return 2.0 * static_cast<double>(multiply_adds * positions * steps) / once;
  }
  double bytes(std::int64_t size) const {
    const std::int64_t positions = size / bytes_read;
    const auto from = memory.allocate(size), sums = memory.allocate(4 * positions);
    memory.clear(from.get(), size);
    const std::array buffers{from.get(), sums.get()};
    const double once = seconds([&] { kernels->launch(1, buffers, {}, positions); });
    return static_cast<double>(positions * bytes_read) / once;
  }
  double launch() const {
    constexpr int launches = 200;
    const double all = seconds([&] {
      for (int i = 0; i < launches; ++i) kernels->launch(2, {}, {}, 1);
    });
    return all / launches;
  }
};

}  // namespace

DeviceFigures measure(const DeviceFacts& device, DeviceMemory& memory) {
  const std::int64_t most = std::min(device.largest_buffer, device.memory / 8);
  const std::int64_t size = std::min<std::int64_t>(most, 256 << 20), moved = std::min<std::int64_t>(most, 32 << 20);
  const Bench bench(memory);
  DeviceFigures figures;
  figures.flops = bench.flops(device);
  figures.bytes = bench.bytes(size);
  figures.launch = bench.launch();
  std::vector<std::byte> host(static_cast<std::size_t>(moved));
  const auto there = memory.allocate(moved);
  figures.upload = static_cast<double>(moved) / bench.seconds([&] { memory.upload(there.get(), host); });
  figures.download = static_cast<double>(moved) / bench.seconds([&] { memory.download(host, there.get()); });
  return figures;
}

}  // namespace rlx::opencl
