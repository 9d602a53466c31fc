#pragma once
#include <chrono>
#include <cstddef>
#include <vector>

namespace rlx {

/// What each worker of a pool did in the loops that one thread started: for timelines.
struct LoopRecord {
  using Clock = std::chrono::steady_clock;
  struct Interval {
    std::size_t part;
    Clock::time_point begin, end;
  };

  explicit LoopRecord(int workers) : of_worker(static_cast<std::size_t>(workers)) {}

  std::size_t part = 0;  // of the work: what the loops that start from now on belong to
  std::vector<std::vector<Interval>> of_worker;
};

/// As long as it lives, shared loops that the current thread starts are noted in `record`.
class RecordLoops {
 public:
  explicit RecordLoops(LoopRecord& record);
  ~RecordLoops();
  RecordLoops(const RecordLoops&) = delete;
  RecordLoops& operator=(const RecordLoops&) = delete;
};

}  // namespace rlx
