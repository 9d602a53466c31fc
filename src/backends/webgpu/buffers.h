#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

#include "backends/webgpu/device.h"

namespace rlx::webgpu {

/// Where in the driver's memory an address is.
struct Place {
  BufferHandle buffer;
  std::int64_t offset, bytes;  // of the address in the buffer, and of the whole buffer
};

/// The memory of a device under addresses that nothing else of the process has: a range of them is reserved for each buffer, and backed by
/// nothing. What is let go is kept for what asks next, as long as it is little. Thread-safe.
class Buffers {
 public:
  explicit Buffers(OpenDevice& device) : device_(device) {}
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  /// Throws Error where the device has no memory for it: the size asked for, the largest buffer, what is taken.
  std::byte* take(std::int64_t bytes);
  void let_go(std::byte* address);
  /// Of `bytes` from an address on; throws InternalError where they are not all in one buffer.
  Place find(const std::byte* address, std::int64_t bytes = 0) const;

 private:
  struct Buffer {
    std::byte* address;
    BufferHandle handle;
    std::int64_t bytes;
  };
  Buffer take_kept(std::int64_t bytes);
  Buffer create(std::int64_t bytes);
  void release(const Buffer& buffer);
  void release_kept(std::int64_t bytes_to_keep);
  [[noreturn]] void refuse(std::int64_t bytes, const std::string& why) const;

  static constexpr std::size_t most_kept = 64;  // buffers
  static constexpr std::int64_t most_kept_bytes = 256 << 20;

  OpenDevice& device_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Buffer> taken_;       // by the address at which they begin
  std::deque<Buffer> kept_;                        // the one let go first in front
  std::int64_t taken_bytes_ = 0, kept_bytes_ = 0;  // the former with the latter
};

}  // namespace rlx::webgpu
