#include "terminal/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/files/file_writer.h"
#include "terminal/terminal.h"

namespace rlx::command {
namespace {

constexpr int fault_signal = SIGUSR2;  // from the thread that met a fault to the one that may clean up
std::atomic<bool> file_was_cut{false};

enum class Answer : std::uint8_t { none, running, stopped };
std::atomic<Answer> answer{Answer::none};

/// A page of a mapped file that is no longer there. Returning would meet the fault again, and here nothing may be locked or freed.
void hand_over_fault(int /*number*/) {
  file_was_cut = true;
  kill(getpid(), fault_signal);
  for (;;) pause();
}

/// Says why, and ends as an error of the user's does.
[[noreturn]] void end_by_fault() {
  constexpr std::string_view message = "rlx: a file was cut short, or its disk failed, while it was being read\n";
  const auto written = ::write(STDERR_FILENO, message.data(), message.size());
  static_cast<void>(written);
  _exit(1);
}

sigset_t signals_to_watch() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, fault_signal);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now{};
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&watched, number);
  }
  return watched;
}

/// Waits for a signal that is not meant for an answer and lets it have its usual effect, so that the parent sees what ended the process. A
/// thread of its own may lock and free memory, which a signal handler may not.
void end_by_signal(sigset_t watched) {
  int number = 0;
  Answer running = Answer::running;
  do {
    if (sigwait(&watched, &number) != 0) return;
    running = Answer::running;
  } while (number == SIGINT && answer.compare_exchange_strong(running, Answer::stopped));
  end_editing();
  const auto no_writer_goes_on = remove_temporary_files();
  if (file_was_cut) end_by_fault();
  pthread_sigmask(SIG_UNBLOCK, &watched, nullptr);
  raise(number);
}

}  // namespace

void remove_temporary_files_on_signals() {
  const sigset_t watched = signals_to_watch();
  pthread_sigmask(SIG_BLOCK, &watched, nullptr);  // threads inherit it
  try {
    std::thread(end_by_signal, watched).detach();
    struct sigaction fault{};
    fault.sa_handler = hand_over_fault;
    sigaction(SIGBUS, &fault, nullptr);
    std::signal(SIGXFSZ, SIG_IGN);      // a file that may not grow is an error of its writer, as a full disk is
  } catch (const std::system_error&) {  // no thread to be had: signals end the process as they always do
    pthread_sigmask(SIG_UNBLOCK, &watched, nullptr);
  }
}

AnswerInterrupt::AnswerInterrupt() { answer = Answer::running; }
AnswerInterrupt::~AnswerInterrupt() { answer = Answer::none; }
bool AnswerInterrupt::pressed() const { return answer == Answer::stopped; }

void end_by_interrupt() {
  kill(getpid(), SIGINT);
  for (;;) pause();
}

}  // namespace rlx::command
