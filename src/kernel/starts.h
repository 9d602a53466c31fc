#pragma once
#include "kernel/kernel.h"

namespace rlx {

/// For each buffer the first element that the kernel reads or writes, where that has a known number; else 0.
std::vector<std::int64_t> first_elements(const Kernel& kernel);

/// The kernel for buffers that are given from those elements on: kernels that do the same at different places are then one.
Kernel counted_from(Kernel kernel, const std::vector<std::int64_t>& first);

}  // namespace rlx
