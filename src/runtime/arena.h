#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace rlx {

/// Memory that is reserved but only backed where it is touched; page-aligned.
class Arena {
 public:
  /// Throws Error when the address space cannot be had.
  explicit Arena(std::int64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Arenas of one size, one for each run that is going on.
class ArenaPool {
 public:
  explicit ArenaPool(std::int64_t bytes) : bytes_(bytes) {}
  /// Lends an arena until the pointer is released; `this` must live as long.
  std::unique_ptr<Arena, std::function<void(Arena*)>> borrow();
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> idle_;
};

}  // namespace rlx
