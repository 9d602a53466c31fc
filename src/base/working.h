#pragma once

namespace rlx {

/// While one lives, its thread may hold locks. A child of the process has these locks, but not the thread that would open them: where one
/// lived at the fork, the child makes none, and says so instead of waiting for ever.
class Working {
 public:
  /// Throws Error in such a child.
  Working();
  ~Working();
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
};

}  // namespace rlx
