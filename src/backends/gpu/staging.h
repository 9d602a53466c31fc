#pragma once
#include <array>
#include <mutex>
#include <span>

#include "backends/gpu/event.h"
#include "base/thread_pool.h"

namespace rlx::gpu {

/// Memory of the host that a device reads by itself. While it reads one part, threads fill the other: from pageable memory, or from a
/// mapped file, which is read as they go. Thread-safe.
class Staging {
 public:
  explicit Staging(const Memory& memory);

  /// `from` may change once it returns; the device reads on.
  void upload(std::byte* to, std::span<const std::byte> from);

 private:
  struct Part {
    explicit Part(const Memory& of);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    const Memory& memory;
    std::byte* bytes = nullptr;
    const Event was_read;
  };

  const Memory& memory_;
  std::mutex mutex_;  // of what follows
  ThreadPool pool_;
  std::array<Part, 2> parts_;
  std::size_t next_ = 0;  // of the parts
};

}  // namespace rlx::gpu
