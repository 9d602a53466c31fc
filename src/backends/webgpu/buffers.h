#pragma once
#include "backends/addressed_buffers.h"
#include "backends/webgpu/device.h"

namespace rlx::webgpu {

/// Where in the driver's memory an address is.
struct BufferPlace {
  BufferHandle buffer;
  std::int64_t offset, bytes;  // of the address in the buffer, and of the whole buffer
};

/// The memory of a device.
class Buffers : public AddressedBuffers {
 public:
  explicit Buffers(OpenDevice& device);
  ~Buffers() { release_all(); }

  /// Of `bytes` from an address on; throws InternalError where they are not all in one buffer.
  BufferPlace find(const std::byte* address, std::int64_t bytes = 0) const {
    const Found at = found(address, bytes);
    return {static_cast<BufferHandle>(at.buffer), at.offset, at.bytes};
  }

 private:
  void* create(std::int64_t bytes, std::string& why) override;
  void destroy(void* buffer) override { device_.driver().BufferRelease(static_cast<BufferHandle>(buffer)); }

  OpenDevice& device_;
};

}  // namespace rlx::webgpu
