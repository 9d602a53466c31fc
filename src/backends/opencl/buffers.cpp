#include "backends/opencl/buffers.h"

#include "base/memory/pages.h"

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

/// A CPU reads weights faster from huge pages, for which drivers do not ask.
void* Buffers::create(std::int64_t bytes, std::string& why) {
  cl_int code = CL_SUCCESS;
  const auto size = static_cast<std::size_t>(bytes);
  auto pages = device_.is_cpu && device_.memory_is_hosts && size >= huge_page_bytes
                   ? std::make_unique<Pages>(map_pages(size, Backing::reserved))
                   : std::make_unique<Pages>();
  const cl_mem_flags flags = CL_MEM_READ_WRITE | (*pages ? cl_mem_flags{CL_MEM_USE_HOST_PTR} : 0);
  const cl_mem memory = device_.driver->CreateBuffer(context_, flags, size, pages->get(), &code);
  if (code != CL_SUCCESS) {
    why = code_name(code);
    return nullptr;
  }
  if (*pages) {
    const auto let_go = [](cl_mem, void* held) { delete static_cast<Pages*>(held); };
    check(device_, device_.driver->SetMemObjectDestructorCallback(memory, let_go, pages.get()), "holding {} bytes", bytes);
    [[maybe_unused]] const Pages* held_by_driver = pages.release();
  }
  return memory;
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
