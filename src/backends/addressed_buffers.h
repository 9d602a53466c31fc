#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace rlx {

/// What a device says of its memory.
struct BufferLimits {
  std::string device;                   // its name and title
  std::int64_t largest;                 // bytes of a buffer
  std::int64_t memory;                  // bytes of all; 0: unknown
  std::int64_t most_kept;               // bytes that are let go and kept
  std::string why_too_large, why_full;  // in the driver's words
};

/// Buffers of a driver that gives them no addresses, under addresses that nothing else of the process has: a range of them is reserved for
/// each buffer, and backed by nothing. What is let go is kept for what asks next, as long as it is little. Thread-safe.
class AddressedBuffers {
 public:
  explicit AddressedBuffers(BufferLimits limits) : limits_(std::move(limits)) {}
  AddressedBuffers(const AddressedBuffers&) = delete;
  AddressedBuffers& operator=(const AddressedBuffers&) = delete;

  /// Throws Error where the device has no memory for it: the size asked for, the largest buffer, what is taken of how much.
  std::byte* take(std::int64_t bytes);
  void let_go(std::byte* address);
  /// What is kept.
  void release_all();
  /// Of what is taken and not let go.
  std::int64_t bytes_in_use() const;

 protected:
  ~AddressedBuffers() = default;
  /// Where in the driver's memory an address is.
  struct Found {
    void* buffer;
    std::int64_t offset, bytes;  // of the address in the buffer, and of the whole buffer
  };
  /// Of `bytes` from an address on; throws InternalError where they are not all in one buffer.
  Found found(const std::byte* address, std::int64_t bytes) const;
  /// A buffer that is never kept; null where the process has no addresses for it.
  std::byte* add(void* buffer, std::int64_t bytes);

  /// Null, and why, where the driver gives none.
  virtual void* create(std::int64_t bytes, std::string& why) = 0;
  /// Commands that were asked for hold the memory until they are done.
  virtual void destroy(void* buffer) = 0;

 private:
  struct Buffer {
    std::byte* address;
    void* handle;
    std::int64_t bytes;
    bool is_kept = true;  // when it is let go
  };
  Buffer take_kept(std::int64_t bytes);
  Buffer make(std::int64_t bytes);
  void release(const Buffer& buffer);
  void release_kept(std::int64_t bytes_to_keep);
  [[noreturn]] void refuse(std::int64_t bytes, const std::string& why) const;

  const BufferLimits limits_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Buffer> taken_;       // by the address at which they begin
  std::deque<Buffer> kept_;                        // the one let go first in front
  std::int64_t taken_bytes_ = 0, kept_bytes_ = 0;  // the former with the latter
};

}  // namespace rlx
