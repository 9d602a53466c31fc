#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "backends/backend.h"

namespace rlx {

/// Kernels of an executable, each of which its device's memory launches by itself.
template <class Memory, class Kernel>
class LoadedKernels : public DeviceKernels {
 public:
  LoadedKernels(Memory& memory, std::vector<std::shared_ptr<const Kernel>> kernels, CompileCounters counted)
      : memory_(memory), kernels_(std::move(kernels)) {
    counters = std::move(counted);
  }
  void launch(std::size_t kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
              std::int64_t positions) override {
    if (positions > 0) memory_.launch(*kernels_.at(kernel), buffers, sizes, positions);
  }

 private:
  Memory& memory_;
  std::vector<std::shared_ptr<const Kernel>> kernels_;
};

}  // namespace rlx
