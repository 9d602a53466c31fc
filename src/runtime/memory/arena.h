#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/memory/pages.h"

namespace rlx {

/// Memory that is reserved but only backed where it is touched; see map_pages.
class Arena {
 public:
  /// Throws Error when the address space cannot be had.
  explicit Arena(std::int64_t bytes);
  std::byte* data() const { return pages_.get(); }

 private:
  Pages pages_;
};

/// Arenas of one size, one for each run that is going on. A few are kept for the next runs, so that a burst of runs at a time does not
/// hold its memory for ever.
class ArenaPool {
 public:
  static constexpr std::size_t most_idle = 4;

  explicit ArenaPool(std::int64_t bytes) : bytes_(bytes) { idle_.reserve(most_idle); }
  /// Lends an arena until the pointer is released; `this` must live as long.
  std::unique_ptr<Arena, std::function<void(Arena*)>> borrow();
  std::int64_t bytes() const { return bytes_; }
  /// Frees the arenas that are not lent.
  void trim();
  std::size_t idle() const;

 private:
  std::int64_t bytes_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> idle_;
};

}  // namespace rlx
