#include "backends/opencl/buffers.h"

namespace rlx::opencl {

Buffers::Buffers(const DeviceFacts& device, cl_context context)
    : AddressedBuffers({.device = fmt::format("{} ({})", device.name, device.title),
                        .largest = device.largest_buffer,
                        .memory = device.memory,
                        .most_kept = device.memory / 16,
                        .why_too_large = code_name(CL_INVALID_BUFFER_SIZE),
                        .why_full = code_name(CL_MEM_OBJECT_ALLOCATION_FAILURE)}),
      device_(device),
      context_(context) {}

void* Buffers::create(std::int64_t bytes, std::string& why) {
  cl_int code = CL_SUCCESS;
  const cl_mem memory = device_.driver->CreateBuffer(context_, CL_MEM_READ_WRITE, static_cast<std::size_t>(bytes), nullptr, &code);
  if (code == CL_SUCCESS) return memory;
  why = code_name(code);
  return nullptr;
}

/// Kernels read elements and vectors of such, which need the alignment of an element alone.
std::byte* Buffers::wrap(std::span<const std::byte> bytes) {
  if (std::ssize(bytes) > device_.largest_buffer) return nullptr;
  cl_int code = CL_SUCCESS;
  const cl_mem memory = device_.driver->CreateBuffer(context_, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, bytes.size(),
                                                     const_cast<std::byte*>(bytes.data()), &code);
  if (code != CL_SUCCESS) return nullptr;
  std::byte* const address = add(memory, std::ssize(bytes));
  if (!address) destroy(memory);
  return address;
}

}  // namespace rlx::opencl
