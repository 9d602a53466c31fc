#pragma once
#include <nanobind/nanobind.h>

namespace rlx::python {

/// Lets other threads of Python run until it goes. A thread that comes back when the interpreter has begun to end stays here for good:
/// Python would unwind it through C++ else, which ends the process.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

/// Has the interpreter say when it begins to end.
void watch_for_the_end();

}  // namespace rlx::python
