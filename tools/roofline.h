#pragma once
#include <map>
#include <string>
#include <vector>

#include "rlx/session.h"

namespace rlx::command {

/// What this machine can do at best: the lines that no kernel gets above.
struct Roofline {
  std::map<std::string, double> flops;  // from registers, FLOP/s of all threads together, by LaunchReport::arithmetic
  double bytes = 0;                     // read from memory, bytes/s of all threads together

  /// The least time for a launch of an arithmetic that was measured: what takes longer of computing and moving.
  double seconds(const LaunchReport& launch) const;
  bool bound_by_memory(const LaunchReport& launch) const;
};

/// Measures with `threads` threads, in a few tenths of a second, the arithmetics of these launches and the memory. Throws Error when the
/// threads or the memory cannot be had.
Roofline measure_roofline(int threads, const std::vector<LaunchReport>& launches);

}  // namespace rlx::command
