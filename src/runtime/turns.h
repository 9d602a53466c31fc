#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace rlx {

/// A lock that is had in the order in which it was asked for. Who cannot wait yet takes a place, and waits for it later.
class Turns {
 public:
  std::uint64_t take_place() {
    const std::scoped_lock lock(mutex_);
    return places_++;
  }
  void wait_for(std::uint64_t place) {
    std::unique_lock lock(mutex_);
    next_.wait(lock, [&] { return turn_ == place; });
  }
  void lock() { wait_for(take_place()); }
  void unlock() {
    {
      const std::scoped_lock lock(mutex_);
      ++turn_;
    }
    next_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable next_;
  std::uint64_t places_ = 0, turn_ = 0;
};

}  // namespace rlx
