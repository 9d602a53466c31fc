#pragma once
#include <string_view>

#include "backends/backend.h"

namespace rlx {

/// Kernels in the language of a device by which its figures are measured, and what a launch of them does.
struct MeasuredKernels {
  /// `multiply_adds` a position and step in registers alone, in as many chains as hide their latency; one buffer, of f32 by position, and
  /// one size, the steps.
  std::string_view computing;
  std::int64_t multiply_adds, positions, steps;
  /// Sums `bytes_read` of the first buffer a position, into the second, of f32 by position.
  std::string_view reading;
  std::int64_t bytes_read;
  std::string_view nothing;  // no buffers
  std::int64_t read, moved;  // bytes: of the buffer that is read, and of transfers
};

/// What they reach at best, in about a second.
DeviceFigures measure(DeviceMemory& memory, const MeasuredKernels& kernels);

}  // namespace rlx
