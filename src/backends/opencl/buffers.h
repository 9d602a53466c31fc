#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>

#include "backends/opencl/device.h"

namespace rlx::opencl {

/// Where in the driver's memory an address is.
struct Place {
  cl_mem memory;
  std::int64_t offset;  // bytes
};

/// The memory of a device under addresses that nothing else of the process has: a range of them is reserved for each buffer, and backed by
/// nothing. What is let go is kept for what asks next, as long as it is little. Thread-safe.
class Buffers {
 public:
  Buffers(const DeviceFacts& device, cl_context context) : device_(device), context_(context) {}

  /// Throws Error where the device has no memory for it: the size asked for, the largest buffer, what is taken of how much.
  std::byte* take(std::int64_t bytes);
  /// Memory of the host that the device reads where it lies; null where the driver does not take it. It is let go as any other, once
  /// nothing reads it.
  std::byte* wrap(std::span<const std::byte> bytes);
  void let_go(std::byte* address);
  /// Of `bytes` from an address on; throws InternalError where they are not all in one buffer.
  Place find(const std::byte* address, std::int64_t bytes = 0) const;
  /// What is kept.
  void release_all();
  /// Of what is taken and not let go.
  std::int64_t bytes_in_use() const {
    const std::lock_guard lock(mutex_);
    return taken_bytes_ - kept_bytes_;
  }

 private:
  struct Buffer {
    std::byte* address;
    cl_mem memory;
    std::int64_t bytes;
    bool is_wrapped = false;
  };
  Buffer take_kept(std::int64_t bytes);
  Buffer create(std::int64_t bytes);
  void release(const Buffer& buffer);
  void release_kept(std::int64_t bytes_to_keep);
  [[noreturn]] void refuse(std::int64_t bytes, cl_int code) const;

  static constexpr std::size_t most_kept = 64;  // buffers

  const DeviceFacts& device_;
  cl_context context_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Buffer> taken_;       // by the address at which they begin
  std::deque<Buffer> kept_;                        // the one let go first in front
  std::int64_t taken_bytes_ = 0, kept_bytes_ = 0;  // the former with the latter
};

}  // namespace rlx::opencl
