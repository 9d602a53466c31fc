#pragma once

namespace rlx::command {

/// What this machine can do at best: the two lines that no kernel gets above.
struct Roofline {
  double flops = 0;  // f32 multiply-adds from registers, FLOP/s of all threads together
  double bytes = 0;  // read from memory, bytes/s of all threads together

  /// The least time for the work: what takes longer of computing and moving.
  double seconds(double work_flops, double work_bytes) const;
  bool bound_by_memory(double work_flops, double work_bytes) const;
};

/// Measures both with `threads` threads, in a few tenths of a second. Throws Error when the threads or the memory cannot be had.
Roofline measure_roofline(int threads);

}  // namespace rlx::command
