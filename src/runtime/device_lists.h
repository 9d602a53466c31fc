#pragma once
#include <span>
#include <vector>

#include "lowering/kernel_step.h"
#include "lowering/slots.h"

namespace rlx {

/// Steps that stand side by side in a program, all of generated kernels, which a device gets as one list.
struct DeviceList {
  struct Kernel {
    const KernelStep* step;
    std::size_t number;      // see GeneratedKernel
    std::vector<int> after;  // kernels of the list
  };
  std::size_t begin, end;  // steps
  std::vector<Kernel> kernels;
  std::size_t buffers = 0;  // of all kernels
};

/// By step: those before it that it must not overtake, at any sizes, but for those that follow from others. It reads and writes what they
/// write, writes what they read, or may get memory of the arena that they use.
std::vector<std::vector<int>> step_order(const ProgramSlots& slots, const std::vector<std::size_t>& state_of_output);

/// The lists of a program, in order. `prepared`: the steps that are no part of a run.
std::vector<DeviceList> device_lists(std::span<const LaunchStep> steps, const std::vector<bool>& prepared,
                                     const std::vector<std::vector<int>>& order);

}  // namespace rlx
