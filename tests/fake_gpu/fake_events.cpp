// Events of the driver without a GPU. A stream that waits for an event has the other stream do what stands
// before it; an event knows the time at which that was done.
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "fake_gpu/entries.h"

int fake_later(void* stream, std::function<int()> work);
int fake_do_next(void* stream);
std::mutex& fake_mutex();  // held by who waits for a stream

namespace {

constexpr int success = 0, invalid_value = 1, not_ready = 600;
using Clock = std::chrono::steady_clock;

struct Event {
  void* stream = nullptr;
  std::shared_ptr<Clock::time_point> done;
};

}  // namespace

ENTRY(int, cuEventCreate, hipEventCreateWithFlags)(Event** event, unsigned) {
  *event = new Event;
  return success;
}
ENTRY(int, cuEventDestroy_v2, hipEventDestroy)(Event* event) {
  delete event;
  return success;
}
ENTRY(int, cuEventRecord, hipEventRecord)(Event* event, void* stream) {
  event->stream = stream;
  event->done = std::make_shared<Clock::time_point>();
  return fake_later(stream, [done = event->done] {
    *done = Clock::now();
    return success;
  });
}
ENTRY(int, cuEventSynchronize, hipEventSynchronize)(const Event* event) {
  const std::lock_guard lock(fake_mutex());
  int code = success;
  while (code == success && event->done && *event->done == Clock::time_point()) code = fake_do_next(event->stream);
  return code;
}
ENTRY(int, cuEventElapsedTime, hipEventElapsedTime)(float* milliseconds, const Event* from, const Event* to) {
  if (!from->done || !to->done) return invalid_value;
  if (*from->done == Clock::time_point() || *to->done == Clock::time_point()) return not_ready;
  *milliseconds = std::chrono::duration<float, std::milli>(*to->done - *from->done).count();
  return success;
}
ENTRY(int, cuStreamWaitEvent, hipStreamWaitEvent)(void* stream, const Event* event, unsigned) {
  return fake_later(stream, [other = event->stream, done = event->done] {
    int code = success;
    while (code == success && *done == Clock::time_point()) code = fake_do_next(other);
    return code;
  });
}
