#include "backends/gpu/measure.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/fastest_seconds.h"

namespace rlx::gpu {
namespace {

constexpr double budget = 0.15;             // seconds for each figure
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
    const std::int64_t positions = std::max<std::int64_t>(device.units, 1) * 2048, steps = 4096;
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
  const std::int64_t size = std::min<std::int64_t>(device.memory / 8, 1 << 30), moved = std::min<std::int64_t>(device.memory / 8, 32 << 20);
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

}  // namespace rlx::gpu
