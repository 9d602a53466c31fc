#include "terminal.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
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

}  // namespace

bool understands_escapes() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

void begin_editing() {
  std::fflush(stdout);
  tcgetattr(STDIN_FILENO, &before);
  is_edited = true;
  send("\x1b[?2004h");
}

void end_editing() {
  if (!is_edited.exchange(false)) return;
  send("\x1b[?2004l");
  tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

}  // namespace rlx::command
