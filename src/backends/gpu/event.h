#pragma once
#include "backends/gpu/memory.h"

namespace rlx::gpu {

/// A place in what a device was asked for.
class Event {
 public:
  enum class Time : unsigned { noted = 0, left_out = 2 };

  Event(const Memory& memory, Time time) : memory_(memory) {
    check(memory.device(), memory.driver().CreateEvent(&handle_, static_cast<unsigned>(time)), "making an event");
  }
  ~Event() { memory_.driver().DestroyEvent(handle_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record() const { check(memory_.device(), memory_.driver().RecordEvent(handle_, memory_.stream()), "noting an event"); }
  /// Until all that stood before it is done; not at all where it was never recorded.
  void wait() const { check(memory_.device(), memory_.driver().AwaitEvent(handle_), "waiting for it"); }
  DriverEvent handle() const { return handle_; }

 private:
  const Memory& memory_;
  DriverEvent handle_ = nullptr;
};

}  // namespace rlx::gpu
