#pragma once
#include <map>
#include <string>
#include <vector>

#include "rlx/session.h"

namespace rlx::cpu {

/// What this machine can do at best: the lines that no kernel gets above.
struct Roofline {
  std::map<std::string, double> flops;  // from registers, FLOP/s of all threads together, by LaunchReport::arithmetic, where it is known
  double bytes = 0;                     // read from memory, bytes/s of all threads together

  /// The least time for a launch: what takes longer of computing, where its limit is known, and moving.
  double seconds(const LaunchReport& launch) const;
  bool bound_by_memory(const LaunchReport& launch) const;
  /// The least time as percents of the time taken; 0 for a launch that was not timed.
  double percent_reached(const LaunchReport& launch) const;
  /// The least time for its arithmetic alone; 0 where no loop of this CPU is known to give its limit.
  double computing(const LaunchReport& launch) const;
};

/// Measures with `threads` threads, in a few tenths of a second, the arithmetics of these launches and the memory. Throws Error when the
/// threads or the memory cannot be had.
Roofline measure_roofline(int threads, const std::vector<LaunchReport>& launches);

}  // namespace rlx::cpu
