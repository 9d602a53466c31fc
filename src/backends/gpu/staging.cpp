#include "backends/gpu/staging.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace rlx::gpu {
namespace {

constexpr std::size_t part_bytes = 16 << 20;

/// One thread copies a fifth of what a device reads in the same time.
int copying_threads() {
  constexpr unsigned most = 6;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, most));
}

}  // namespace

Staging::Part::Part(const Memory& of) : memory(of), was_read(of, Event::Time::left_out) {
  void* found = nullptr;
  check(of.device(), of.driver().AllocateOnHost(&found, part_bytes, 0), "taking {} bytes of the host for transfers", part_bytes);
  bytes = static_cast<std::byte*>(found);
}

Staging::Part::~Part() { memory.driver().FreeOnHost(bytes); }

Staging::Staging(const Memory& memory) : memory_(memory), pool_(copying_threads()), parts_{Part(memory), Part(memory)} {}

void Staging::upload(std::byte* to, std::span<const std::byte> from) {
  const std::lock_guard lock(mutex_);
  for (std::size_t at = 0; at < from.size(); at += part_bytes) {
    const Part& part = parts_[next_];
    next_ = 1 - next_;
    part.was_read.wait();
    const std::span<const std::byte> now = from.subspan(at, std::min(part_bytes, from.size() - at));
    constexpr std::int64_t grain = 256 << 10;
    pool_.parallel_for(std::ssize(now), grain, [&](std::int64_t begin, std::int64_t end, int) {
      std::memcpy(part.bytes + begin, now.data() + begin, static_cast<std::size_t>(end - begin));
    });
    check(memory_.device(), memory_.driver().Upload(to + at, part.bytes, now.size(), memory_.stream()), "writing {} bytes", from.size());
    part.was_read.record();
  }
}

}  // namespace rlx::gpu
