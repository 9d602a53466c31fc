#include "released.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace nb = nanobind;

namespace rlx::python {
namespace {

std::atomic<bool> ends{false};
std::atomic<int> coming_back{0};
std::thread::id who_ends;  // and goes on; read where `ends` is set

void begin_to_end() {
  who_ends = std::this_thread::get_id();
  ends = true;
  const nb::gil_scoped_release released;
  while (coming_back > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

Released::~Released() {
  ++coming_back;
  if (ends && std::this_thread::get_id() != who_ends) {
    --coming_back;
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  PyEval_RestoreThread(state_);
  --coming_back;
}

void watch_for_the_end() { nb::module_::import_("atexit").attr("register")(nb::cpp_function(begin_to_end)); }

}  // namespace rlx::python
