#include "interrupt.h"

#include <csignal>
#include <initializer_list>
#include <system_error>
#include <thread>

#include "base/file_writer.h"

namespace rlx::command {
namespace {

sigset_t signals_to_watch() {
  sigset_t watched;
  sigemptyset(&watched);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now{};
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&watched, number);
  }
  return watched;
}

/// Waits for a signal and lets it have its usual effect, so that the parent sees what ended the process. A thread of its own may lock and
/// free memory, which a signal handler may not.
void end_by_signal(sigset_t watched) {
  int number = 0;
  if (sigwait(&watched, &number) != 0) return;
  const auto no_writer_goes_on = remove_temporary_files();
  pthread_sigmask(SIG_UNBLOCK, &watched, nullptr);
  raise(number);
}

}  // namespace

void remove_temporary_files_on_signals() {
  const sigset_t watched = signals_to_watch();
  pthread_sigmask(SIG_BLOCK, &watched, nullptr);  // threads inherit it
  try {
    std::thread(end_by_signal, watched).detach();
  } catch (const std::system_error&) {  // no thread to be had: signals end the process as they always do
    pthread_sigmask(SIG_UNBLOCK, &watched, nullptr);
  }
}

}  // namespace rlx::command
