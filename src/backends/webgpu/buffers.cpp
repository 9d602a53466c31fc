#include "backends/webgpu/buffers.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/bytes_text.h"

namespace rlx::webgpu {
namespace {

constexpr std::int64_t piece = 256;  // sizes are multiples of it

/// With one byte more than the buffer has, so that its end is no other's beginning.
std::size_t range_bytes(std::int64_t bytes) { return static_cast<std::size_t>(bytes) + 1; }

std::byte* reserve_range(std::int64_t bytes) {
  void* const range = ::mmap(nullptr, range_bytes(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? nullptr : static_cast<std::byte*>(range);
}

}  // namespace

Buffers::~Buffers() { release_kept(0); }

std::byte* Buffers::take(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::int64_t largest = device_.facts.largest_buffer();
  if (bytes < 0 || bytes > largest) refuse(bytes, "larger than a kernel can read");
  const std::int64_t rounded = std::min((std::max<std::int64_t>(bytes, 1) + piece - 1) / piece * piece, largest);
  Buffer buffer = take_kept(rounded);
  if (!buffer.handle) buffer = create(rounded);
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
  const BufferDescriptor descriptor{{}, copy_from | copy_to | storage, static_cast<std::uint64_t>(bytes)};
  std::string why;
  const auto ask = [&] {
    const BufferHandle handle = device_.driver().DeviceCreateBuffer(device_.handle, &descriptor);
    why = device_.take_report();
    if (why.empty() || !handle) return handle;
    device_.driver().BufferRelease(handle);
    return BufferHandle{};
  };
  BufferHandle handle = ask();
  if (!handle && !kept_.empty()) {
    release_kept(0);
    handle = ask();
  }
  if (!handle) refuse(bytes, why);
  std::byte* const address = reserve_range(bytes);
  if (!address) {
    device_.driver().BufferRelease(handle);
    fail("{}: no addresses for {}: the process has too many", device_.facts.name, bytes_text(bytes));
  }
  taken_bytes_ += bytes;
  return {address, handle, bytes};
}

void Buffers::let_go(std::byte* address) {
  const std::lock_guard lock(mutex_);
  const auto at = taken_.find(address);
  const Buffer buffer = at->second;
  taken_.erase(at);
  kept_.push_back(buffer);
  kept_bytes_ += buffer.bytes;
  release_kept(most_kept_bytes);
}

void Buffers::release_kept(std::int64_t bytes_to_keep) {
  while (!kept_.empty() && (kept_bytes_ > bytes_to_keep || kept_.size() > most_kept)) {
    kept_bytes_ -= kept_.front().bytes;
    taken_bytes_ -= kept_.front().bytes;
    release(kept_.front());
    kept_.pop_front();
  }
}

/// Commands that were recorded hold the memory until they are done.
void Buffers::release(const Buffer& buffer) {
  device_.driver().BufferRelease(buffer.handle);
  ::munmap(buffer.address, range_bytes(buffer.bytes));
}

Place Buffers::find(const std::byte* address, std::int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto after = taken_.upper_bound(address);
  if (after != taken_.begin()) {
    const Buffer& buffer = std::prev(after)->second;
    const std::int64_t offset = address - buffer.address;
    if (offset <= buffer.bytes && bytes <= buffer.bytes - offset) return {buffer.handle, offset, buffer.bytes};
  }
  fail_internal("{}: no buffer holds {} bytes at {}", device_.facts.name, bytes, static_cast<const void*>(address));
}

void Buffers::refuse(std::int64_t bytes, const std::string& why) const {
  fail("{} ({}): no memory for {}: {} (its largest buffer has {}; {} are taken)", device_.facts.name, device_.facts.title,
       bytes_text(bytes), why, bytes_text(device_.facts.largest_buffer()), bytes_text(taken_bytes_));
}

}  // namespace rlx::webgpu
