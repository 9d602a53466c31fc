#include "interrupt.h"

#include <csignal>
#include <initializer_list>

namespace rlx::command {
namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t received = 0;

/// Signals that the process was started to ignore (nohup) stay ignored.
void set_handler(void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (int number : {SIGINT, SIGTERM}) {
    struct sigaction before{};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

extern "C" void remember_signal(int number) { received = number; }

}  // namespace

InterruptGuard::InterruptGuard() {
  // SA_RESETHAND: the second signal has its usual effect. SA_RESTART: reading standard input goes on.
  set_handler(remember_signal, static_cast<int>(SA_RESETHAND) | SA_RESTART);
}

InterruptGuard::~InterruptGuard() { set_handler(SIG_DFL, 0); }

void InterruptGuard::check() const {
  if (received != 0) throw Interrupted{static_cast<int>(received)};
}

}  // namespace rlx::command
