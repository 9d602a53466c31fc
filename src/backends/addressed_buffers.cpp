#include "backends/addressed_buffers.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/bytes_text.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::int64_t piece = 256;    // sizes are multiples of it
constexpr std::size_t most_kept = 64;  // buffers

/// With one byte more than the buffer has, so that its end is no other's beginning.
std::size_t range_bytes(std::int64_t bytes) { return static_cast<std::size_t>(bytes) + 1; }

std::byte* reserve_range(std::int64_t bytes) {
  void* const range = ::mmap(nullptr, range_bytes(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? nullptr : static_cast<std::byte*>(range);
}

}  // namespace

std::byte* AddressedBuffers::take(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes < 0 || bytes > limits_.largest) refuse(bytes, limits_.why_too_large);
  const std::int64_t rounded = std::min((std::max<std::int64_t>(bytes, 1) + piece - 1) / piece * piece, limits_.largest);
  Buffer buffer = take_kept(rounded);
  if (!buffer.handle) buffer = make(rounded);
  taken_.emplace(buffer.address, buffer);
  return buffer.address;
}

/// The smallest that is not much larger.
AddressedBuffers::Buffer AddressedBuffers::take_kept(std::int64_t bytes) {
  auto best = kept_.end();
  for (auto buffer = kept_.begin(); buffer != kept_.end(); ++buffer)
    if (buffer->bytes >= bytes && buffer->bytes - bytes <= bytes / 8 && (best == kept_.end() || buffer->bytes < best->bytes)) best = buffer;
  if (best == kept_.end()) return {};
  const Buffer found = *best;
  kept_.erase(best);
  kept_bytes_ -= found.bytes;
  return found;
}

AddressedBuffers::Buffer AddressedBuffers::make(std::int64_t bytes) {
  const auto is_full = [&] { return limits_.memory > 0 && taken_bytes_ + bytes > limits_.memory; };
  if (is_full()) release_kept(0);
  if (is_full()) refuse(bytes, limits_.why_full);
  std::string why;
  void* handle = create(bytes, why);
  if (!handle && !kept_.empty()) {
    release_kept(0);
    handle = create(bytes, why);
  }
  if (!handle) refuse(bytes, why);
  std::byte* const address = reserve_range(bytes);
  if (!address) {
    destroy(handle);
    fail("{}: no addresses for {}: the process has too many", limits_.device, bytes_text(bytes));
  }
  taken_bytes_ += bytes;
  return {address, handle, bytes};
}

std::byte* AddressedBuffers::add(void* buffer, std::int64_t bytes) {
  std::byte* const address = reserve_range(bytes);
  if (!address) return nullptr;
  const std::lock_guard lock(mutex_);
  taken_.emplace(address, Buffer{address, buffer, bytes, false});
  return address;
}

void AddressedBuffers::let_go(std::byte* address) {
  const std::lock_guard lock(mutex_);
  const auto at = taken_.find(address);
  const Buffer buffer = at->second;
  taken_.erase(at);
  if (!buffer.is_kept) return release(buffer);
  kept_.push_back(buffer);
  kept_bytes_ += buffer.bytes;
  release_kept(limits_.most_kept);
}

void AddressedBuffers::release_kept(std::int64_t bytes_to_keep) {
  while (!kept_.empty() && (kept_bytes_ > bytes_to_keep || kept_.size() > most_kept)) {
    kept_bytes_ -= kept_.front().bytes;
    taken_bytes_ -= kept_.front().bytes;
    release(kept_.front());
    kept_.pop_front();
  }
}

void AddressedBuffers::release(const Buffer& buffer) {
  destroy(buffer.handle);
  ::munmap(buffer.address, range_bytes(buffer.bytes));
}

AddressedBuffers::Found AddressedBuffers::found(const std::byte* address, std::int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto after = taken_.upper_bound(address);
  if (after != taken_.begin()) {
    const Buffer& buffer = std::prev(after)->second;
    const std::int64_t offset = address - buffer.address;
    if (offset <= buffer.bytes && bytes <= buffer.bytes - offset) return {buffer.handle, offset, buffer.bytes};
  }
  fail_internal("{}: no buffer holds {} bytes at {}", limits_.device, bytes, static_cast<const void*>(address));
}

void AddressedBuffers::release_all() {
  const std::lock_guard lock(mutex_);
  release_kept(0);
}

std::int64_t AddressedBuffers::bytes_in_use() const {
  const std::lock_guard lock(mutex_);
  return taken_bytes_ - kept_bytes_;
}

void AddressedBuffers::refuse(std::int64_t bytes, const std::string& why) const {
  const std::string of_all = limits_.memory > 0 ? " of " + bytes_text(limits_.memory) : "";
  fail("{}: no memory for {}: {} (its largest buffer has {}; {}{} are taken)", limits_.device, bytes_text(bytes), why,
       bytes_text(limits_.largest), bytes_text(taken_bytes_), of_all);
}

}  // namespace rlx
