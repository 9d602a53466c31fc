#pragma once
#include <cstddef>
#include <cstdint>

#include "backends/webgpu/device.h"

namespace rlx::webgpu {

/// Notes by the clock of a device that has one when passes begin and end.
class PassClock {
 public:
  explicit PassClock(OpenDevice& device);
  ~PassClock();
  PassClock(const PassClock&) = delete;
  PassClock& operator=(const PassClock&) = delete;

  /// What the next pass is to note; null where no more are noted.
  const PassTimestamps* next();
  /// Records that the times of all passes go to a buffer of so many bytes; null where no pass was noted, or not all were.
  BufferHandle resolve(CommandEncoder encoder);
  std::uint64_t bytes() const { return sizeof(std::uint64_t) * (times_.end + 1); }
  /// From the first beginning to the last end, of what that buffer holds.
  double seconds(const std::byte* times) const;

 private:
  OpenDevice& device_;
  BufferHandle resolved_ = nullptr;
  PassTimestamps times_;  // of the pass that began last; the places behind them are free
  bool missed_ = false;
};

}  // namespace rlx::webgpu
