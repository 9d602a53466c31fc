#include "released.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace nb = nanobind;

namespace rlx::python {
namespace {

std::atomic<bool> ends{false};
std::atomic<int> coming_back{0}, away{0};  // threads that take the lock; those that let it go

constexpr std::chrono::seconds most_waiting(1);  // for those that are away: compilers end soon, runs may not

std::thread::id who_ends;  // and goes on; read where `ends` is set
unsigned long main_thread = 0;

void begin_to_end() {
  who_ends = std::this_thread::get_id();
  ends = true;
  const nb::gil_scoped_release released;
  const auto until = std::chrono::steady_clock::now() + most_waiting;
  while (coming_back > 0 || (away > 0 && std::chrono::steady_clock::now() < until))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// While it lives, the thread takes Python's lock. One that has it goes on: if it stayed here, the one that ends would wait for the lock.
struct ComingBack {
  ComingBack() {
    ++coming_back;
    if (!ends || std::this_thread::get_id() == who_ends || PyGILState_Check() != 0) return;
    --coming_back;
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  ~ComingBack() { --coming_back; }
  ComingBack(const ComingBack&) = delete;
  ComingBack& operator=(const ComingBack&) = delete;
};

/// Only the thread that forked is here.
void begin_child() {
  coming_back = 0, away = 0;
  main_thread = PyThread_get_thread_ident();
}

}  // namespace

void check_signals() {
  if (PyThread_get_thread_ident() != main_thread) {
    if (ends) throw std::runtime_error("the interpreter ends");
    return;
  }
  const Held held;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Released::Released() : interruptible_(check_signals), state_(PyEval_SaveThread()) { ++away; }

Released::~Released() {
  --away;
  const ComingBack coming;
  PyEval_RestoreThread(state_);
}

Held::Held() {
  const ComingBack coming;
  state_ = PyGILState_Ensure();
}

void watch_the_interpreter() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(begin_to_end));
  nb::module_::import_("os").attr("register_at_fork")(nb::arg("after_in_child") = nb::cpp_function(begin_child));
}

}  // namespace rlx::python
