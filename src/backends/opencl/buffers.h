#pragma once
#include <span>

#include "backends/addressed_buffers.h"
#include "backends/opencl/device.h"

namespace rlx::opencl {

/// Where in the driver's memory an address is.
struct BufferPlace {
  cl_mem memory;
  std::int64_t offset;  // bytes
};

/// The memory of a device.
class Buffers : public AddressedBuffers {
 public:
  Buffers(const DeviceFacts& device, cl_context context);

  /// Memory of the host that the device reads where it lies; null where the driver does not take it. It is let go as any other, once
  /// nothing reads it.
  std::byte* wrap(std::span<const std::byte> bytes);
  /// Of `bytes` from an address on; throws InternalError where they are not all in one buffer.
  BufferPlace find(const std::byte* address, std::int64_t bytes = 0) const {
    const Found at = found(address, bytes);
    return {static_cast<cl_mem>(at.buffer), at.offset};
  }

 private:
  void* create(std::int64_t bytes, std::string& why) override;
  void destroy(void* buffer) override { device_.driver->ReleaseMemObject(static_cast<cl_mem>(buffer)); }

  const DeviceFacts& device_;
  cl_context context_;
};

}  // namespace rlx::opencl
