#include "backends/webgpu/buffers.h"

namespace rlx::webgpu {

/// Devices do not say how much memory they have.
Buffers::Buffers(OpenDevice& device)
    : AddressedBuffers({.device = fmt::format("{} ({})", device.facts.name, device.facts.title),
                        .largest = device.facts.largest_buffer(),
                        .memory = 0,
                        .most_kept = 256 << 20,
                        .why_too_large = "larger than a kernel can read",
                        .why_full = {}}),
      device_(device) {}

void* Buffers::create(std::int64_t bytes, std::string& why) {
  const BufferDescriptor descriptor{{}, copy_from | copy_to | storage, static_cast<std::uint64_t>(bytes)};
  const BufferHandle handle = device_.driver().DeviceCreateBuffer(device_.handle, &descriptor);
  why = device_.take_report();
  if (why.empty() || !handle) return handle;
  destroy(handle);
  return nullptr;
}

}  // namespace rlx::webgpu
