#include "backends/measured_kernels.h"

#include <array>
#include <vector>

#include "base/fastest_seconds.h"

namespace rlx {
namespace {

constexpr double budget = 0.15;  // seconds for each figure

struct Bench {
  DeviceMemory& memory;
  const MeasuredKernels& of;
  std::unique_ptr<DeviceKernels> kernels;

  Bench(DeviceMemory& on, const MeasuredKernels& texts_of) : memory(on), of(texts_of) {
    const std::vector<KernelText> texts{{.name = "rlx_computing", .text = std::string(of.computing), .element_bytes = {4}},
                                        {.name = "rlx_reading", .text = std::string(of.reading), .element_bytes = {4, 4}},
                                        {.name = "rlx_nothing", .text = std::string(of.nothing)}};
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

  double flops() const {
    const auto result = memory.allocate(4 * of.positions);
    const std::array buffers{result.get()};
    const double once = seconds([&] { kernels->launch(0, buffers, {&of.steps, 1}, of.positions); });
    return 2.0 * static_cast<double>(of.multiply_adds * of.positions * of.steps) / once;
  }
  double bytes() const {
    const std::int64_t positions = of.read / of.bytes_read;
    const auto from = memory.allocate(of.read), sums = memory.allocate(4 * positions);
    memory.clear(from.get(), of.read);
    const std::array buffers{from.get(), sums.get()};
    const double once = seconds([&] { kernels->launch(1, buffers, {}, positions); });
    return static_cast<double>(positions * of.bytes_read) / once;
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

DeviceFigures measure(DeviceMemory& memory, const MeasuredKernels& kernels) {
  const Bench bench(memory, kernels);
  DeviceFigures figures;
  figures.flops = bench.flops();
  figures.bytes = bench.bytes();
  figures.launch = bench.launch();
  std::vector<std::byte> host(static_cast<std::size_t>(kernels.moved));
  const auto there = memory.allocate(kernels.moved);
  figures.upload = static_cast<double>(kernels.moved) / bench.seconds([&] { memory.upload(there.get(), host); });
  figures.download = static_cast<double>(kernels.moved) / bench.seconds([&] { memory.download(host, there.get()); });
  return figures;
}

}  // namespace rlx
