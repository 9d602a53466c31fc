#pragma once
#include <mutex>
#include <optional>
#include <utility>

namespace rlx {

/// What who asks first opens: most processes open no memory of a device. Thread-safe.
template <class Opened>
class OpenedOnce {
 public:
  /// `of`: what it is made of.
  template <class... Args>
  Opened* get(Args&&... of) const {
    const std::lock_guard lock(opening_);
    if (!opened_) opened_.emplace(std::forward<Args>(of)...);
    return &*opened_;
  }

 private:
  mutable std::mutex opening_;
  mutable std::optional<Opened> opened_;
};

}  // namespace rlx
