#pragma once
#include <nanobind/nanobind.h>

#include "rlx/interruption.h"

namespace rlx::python {

/// On Python's main thread, calls what waits for signals, as Ctrl-C does, and throws what that throws. On others, throws when the
/// interpreter has begun to end: what a compiler uses goes with the process.
void check_signals();

/// Lets other threads of Python run until it goes, while long work checks signals. A thread that comes back when the interpreter has begun
/// to end stays here for good: Python would unwind it through C++ else, which ends the process.
class Released {
 public:
  Released();
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  Interruptible interruptible_;
  PyThreadState* state_;
};

/// Has Python's lock until it goes, on a thread that may have let it go. Where the interpreter has begun to end, the thread stays likewise.
class Held {
 public:
  Held();
  ~Held() { PyGILState_Release(state_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Has the interpreter say when it begins to end, and which its main thread is.
void watch_the_interpreter();

}  // namespace rlx::python
