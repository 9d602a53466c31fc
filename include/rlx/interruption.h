#pragma once
#include <functional>

namespace rlx {

/// While it lives, a graph that is compiled on this thread calls `check` many times a second. What that throws ends the work, which may be
/// begun again. For callers that listen to Ctrl-C. The innermost one counts; it must end on the thread on which it began, before those that
/// are older.
class Interruptible {
 public:
  explicit Interruptible(std::function<void()> check);
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();

 private:
  friend void check_interruption();

  std::function<void()> check_;
  Interruptible* outer_;
};

}  // namespace rlx
