#include "terminal/terminal.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace rlx::command {
namespace {

termios before{};
std::atomic<bool> is_edited{false};

/// Past the buffer of standard output, which another thread may have locked. A terminal that takes nothing holds nobody up.
void send(std::string_view codes) {
  constexpr int patience = 1000;  // milliseconds
  pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (!understands_escapes() || poll(&out, 1, patience) != 1) return;
  const auto written = ::write(STDOUT_FILENO, codes.data(), codes.size());
  static_cast<void>(written);
}

/// Whether the terminal is in the hands of another process group, as that of the shell after `bg`.
bool is_in_background() {
  const pid_t owner = tcgetpgrp(STDIN_FILENO);
  return owner > 0 && owner != getpgrp();
}

void stay_in_background(int /*number*/) {
  constexpr int interval = 100;  // milliseconds; nothing tells of the change
  while (is_in_background()) poll(nullptr, 0, interval);
}

}  // namespace

bool understands_escapes() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

void wait_for_foreground() {
  for (const int number : {SIGTTIN, SIGTTOU}) std::signal(number, stay_in_background);
  stay_in_background(0);
}

void begin_editing() {
  std::fflush(stdout);
  wait_for_foreground();
  tcgetattr(STDIN_FILENO, &before);
  is_edited = true;
  send("\x1b[?2004h");
}

void end_editing() {
  if (!is_edited.exchange(false) || is_in_background()) return;
  send("\x1b[?2004l");
  tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

}  // namespace rlx::command
