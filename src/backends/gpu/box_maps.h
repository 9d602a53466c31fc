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

/// The maps of a launch, in their order among its arguments.
std::vector<EncodedMap> encoded_maps(const DeviceFacts& device, const LoadedKernel& kernel, std::span<std::byte* const> buffers,
                                     std::span<const std::int64_t> sizes);

}  // namespace rlx::gpu
