#pragma once

namespace rlx::command {

/// Thrown where work stops because of Ctrl-C (or SIGTERM), so that unwinding removes temporary files.
struct Interrupted {
  int number;  // of the signal
};

/// While one lives, SIGINT and SIGTERM only set a flag; a second one ends the process at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Throws Interrupted when a signal has come.
  void check() const;
};

}  // namespace rlx::command
