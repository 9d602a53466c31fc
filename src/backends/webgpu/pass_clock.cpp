#include "backends/webgpu/pass_clock.h"

#include <algorithm>
#include <cstring>

namespace rlx::webgpu {
namespace {

constexpr std::uint32_t places = 4096;  // the most that a set may have

}  // namespace

PassClock::PassClock(OpenDevice& device) : device_(device) {
  const QuerySetDescriptor set{{}, queries_of_timestamps, places};
  times_.queries = device.driver().DeviceCreateQuerySet(device.handle, &set);
  const BufferDescriptor buffer{{}, resolved | copy_from, places * sizeof(std::uint64_t)};
  resolved_ = device.driver().DeviceCreateBuffer(device.handle, &buffer);
}

PassClock::~PassClock() {
  device_.driver().BufferRelease(resolved_);
  device_.driver().QuerySetRelease(times_.queries);
}

const PassTimestamps* PassClock::next() {
  missed_ = missed_ || times_.end + 2 >= places;
  if (missed_) return nullptr;
  times_.begin = times_.end == 0 ? 0 : times_.end + 1;
  times_.end = times_.begin + 1;
  return &times_;
}

BufferHandle PassClock::resolve(CommandEncoder encoder) {
  if (missed_ || times_.end == 0) return nullptr;
  device_.driver().CommandEncoderResolveQuerySet(encoder, times_.queries, 0, times_.end + 1, resolved_, 0);
  return resolved_;
}

double PassClock::seconds(const std::byte* times) const {
  std::uint64_t first = UINT64_MAX, last = 0;
  for (std::uint32_t place = 0; place <= times_.end; ++place) {
    std::uint64_t time = 0;
    std::memcpy(&time, times + place * sizeof time, sizeof time);
    first = std::min(first, time), last = std::max(last, time);
  }
  const auto period = device_.driver().QueueGetTimestampPeriod;
  constexpr double nano = 1e-9;
  return static_cast<double>(last - first) * nano * (period ? period(device_.queue) : 1);
}

}  // namespace rlx::webgpu
