#pragma once
#include <array>
#include <span>
#include <vector>

#include "backends/gpu/modules.h"

namespace rlx::gpu {

/// As a copy engine reads it.
struct alignas(64) EncodedMap {
  std::array<std::uint64_t, 16> words;
};

/// The maps of a launch, in their order among its arguments. `values`: the addresses of its buffers, then its sizes.
std::vector<EncodedMap> encoded_maps(const DeviceFacts& device, const LoadedKernel& kernel, std::span<const std::uint64_t> values);

}  // namespace rlx::gpu
