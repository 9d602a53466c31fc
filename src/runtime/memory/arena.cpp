#include "runtime/memory/arena.h"

#include <cerrno>
#include <cstring>

#include "rlx/error.h"

namespace rlx {

Arena::Arena(std::int64_t bytes) : pages_(map_pages(static_cast<std::size_t>(bytes), Backing::as_touched)) {
  if (bytes > 0 && !pages_) fail("memory: {} MiB of scratch memory cannot be reserved: {}", bytes >> 20, std::strerror(errno));
}

std::unique_ptr<Arena, std::function<void(Arena*)>> ArenaPool::borrow() {
  std::unique_ptr<Arena> arena;
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      arena = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!arena) arena = std::make_unique<Arena>(bytes_);
  return {arena.release(), [this](Arena* used) {
            std::unique_ptr<Arena> returned(used);
            const std::scoped_lock lock(mutex_);
            if (idle_.size() < most_idle) idle_.push_back(std::move(returned));
          }};
}

void ArenaPool::trim() {
  std::vector<std::unique_ptr<Arena>> unused;
  unused.reserve(most_idle);
  const std::scoped_lock lock(mutex_);
  unused.swap(idle_);
}

std::size_t ArenaPool::idle() const {
  const std::scoped_lock lock(mutex_);
  return idle_.size();
}

}  // namespace rlx
