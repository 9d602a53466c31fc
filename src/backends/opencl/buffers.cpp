#include "backends/opencl/buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace rlx::opencl {
namespace {

constexpr std::int64_t piece = 256;  // sizes are multiples of it

/// With one byte more than the buffer has, so that its end is no other's beginning.
std::size_t range_bytes(std::int64_t bytes) { return static_cast<std::size_t>(bytes) + 1; }

std::byte* reserve_range(std::int64_t bytes) {
  void* const range = ::mmap(nullptr, range_bytes(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? nullptr : static_cast<std::byte*>(range);
}

}  // namespace

std::byte* Buffers::take(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes < 0 || bytes > device_.largest_buffer) refuse(bytes, CL_INVALID_BUFFER_SIZE);
  const std::int64_t rounded = std::min((std::max<std::int64_t>(bytes, 1) + piece - 1) / piece * piece, device_.largest_buffer);
  Buffer buffer = take_kept(rounded);
  if (!buffer.memory) buffer = create(rounded);
  taken_.emplace(buffer.address, buffer);
  return buffer.address;
}

/// The smallest that is not much larger.
Buffers::Buffer Buffers::take_kept(std::int64_t bytes) {
  auto best = kept_.end();
  for (auto buffer = kept_.begin(); buffer != kept_.end(); ++buffer)
    if (buffer->bytes >= bytes && buffer->bytes - bytes <= bytes / 8 && (best == kept_.end() || buffer->bytes < best->bytes)) best = buffer;
  if (best == kept_.end()) return {};
  const Buffer found = *best;
  kept_.erase(best);
  kept_bytes_ -= found.bytes;
  return found;
}

Buffers::Buffer Buffers::create(std::int64_t bytes) {
  if (taken_bytes_ + bytes > device_.memory) release_kept(0);
  if (taken_bytes_ + bytes > device_.memory) refuse(bytes, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  const auto ask = [&](cl_int& code) {
    return device_.driver->CreateBuffer(context_, CL_MEM_READ_WRITE, static_cast<std::size_t>(bytes), nullptr, &code);
  };
  cl_int code = CL_SUCCESS;
  cl_mem memory = ask(code);
  if (code != CL_SUCCESS && !kept_.empty()) {
    release_kept(0);
    memory = ask(code);
  }
  if (code != CL_SUCCESS) refuse(bytes, code);
  std::byte* const address = reserve_range(bytes);
  if (!address) {
    device_.driver->ReleaseMemObject(memory);
    fail("{}: no addresses for {}: the process has too many", device_.name, bytes_text(bytes));
  }
  taken_bytes_ += bytes;
  return {address, memory, bytes};
}

/// Kernels read elements and vectors of such, which need the alignment of an element alone.
std::byte* Buffers::wrap(std::span<const std::byte> bytes) {
  const std::int64_t size = std::ssize(bytes);
  if (size > device_.largest_buffer) return nullptr;
  cl_int code = CL_SUCCESS;
  const cl_mem memory = device_.driver->CreateBuffer(context_, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, bytes.size(),
                                                     const_cast<std::byte*>(bytes.data()), &code);
  if (code != CL_SUCCESS) return nullptr;
  std::byte* const address = reserve_range(size);
  if (!address) return device_.driver->ReleaseMemObject(memory), nullptr;
  const std::lock_guard lock(mutex_);
  taken_.emplace(address, Buffer{address, memory, size, true});
  return address;
}

void Buffers::let_go(std::byte* address) {
  const std::lock_guard lock(mutex_);
  const auto at = taken_.find(address);
  const Buffer buffer = at->second;
  taken_.erase(at);
  if (buffer.is_wrapped) return release(buffer);
  kept_.push_back(buffer);
  kept_bytes_ += buffer.bytes;
  release_kept(device_.memory / 16);
}

void Buffers::release_kept(std::int64_t bytes_to_keep) {
  while (!kept_.empty() && (kept_bytes_ > bytes_to_keep || kept_.size() > most_kept)) {
    kept_bytes_ -= kept_.front().bytes;
    taken_bytes_ -= kept_.front().bytes;
    release(kept_.front());
    kept_.pop_front();
  }
}

/// Commands that were enqueued hold the memory until they are done.
void Buffers::release(const Buffer& buffer) {
  device_.driver->ReleaseMemObject(buffer.memory);
  ::munmap(buffer.address, range_bytes(buffer.bytes));
}

Place Buffers::find(const std::byte* address, std::int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto after = taken_.upper_bound(address);
  if (after != taken_.begin()) {
    const Buffer& buffer = std::prev(after)->second;
    const std::int64_t offset = address - buffer.address;
    if (offset <= buffer.bytes && bytes <= buffer.bytes - offset) return {buffer.memory, offset};
  }
  fail_internal("{}: no buffer holds {} bytes at {}", device_.name, bytes, static_cast<const void*>(address));
}

void Buffers::release_all() {
  const std::lock_guard lock(mutex_);
  release_kept(0);
}

void Buffers::refuse(std::int64_t bytes, cl_int code) const {
  fail("{} ({}): no memory for {}: {} (its largest buffer has {}; {} of {} are taken)", device_.name, device_.title, bytes_text(bytes),
       code_name(code), bytes_text(device_.largest_buffer), bytes_text(taken_bytes_), bytes_text(device_.memory));
}

}  // namespace rlx::opencl
