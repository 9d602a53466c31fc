#pragma once
#include <chrono>
#include <cstddef>
#include <string>

namespace rlx::command {

/// A bar on stderr for work of more than a second; nothing when stderr is no terminal. Leaves no trace when it ends.
class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(std::size_t done, std::size_t total);
  /// Makes room for output on the same terminal, until the next update.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_;
};

/// From now on shows what the library reports of its long work, each kind with a bar of its own.
void show_progress();

}  // namespace rlx::command
