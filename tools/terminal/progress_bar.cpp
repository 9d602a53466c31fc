#include "terminal/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string_view>

#include <fmt/core.h>

#include "rlx/progress.h"
#include "terminal/say.h"

namespace rlx::command {
namespace {

/// Of the terminal; none where it does not say.
std::size_t columns_of_terminal() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : std::string::npos;
}

}  // namespace

ProgressBar::ProgressBar(std::string what) : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void ProgressBar::update(std::size_t done, std::size_t total) {
  using namespace std::chrono_literals;
  const auto now = Clock::now();
  if (!terminal_ || total == 0 || now - start_ < 1s || (shown_ && now - drawn_ < 100ms)) return;
  constexpr std::size_t width = 30;
  const std::size_t filled = width * done / total;
  const std::string bar = fmt::format("{} [{}{}] {}/{}", what_, std::string(filled, '#'), std::string(width - filled, '.'), done, total);
  if (bar.size() >= columns_of_terminal()) return;  // a line that is broken in two could not be drawn over
  say("\r{}\x1b[K", bar);
  std::fflush(stderr);
  shown_ = true;
  drawn_ = now;
}

void show_progress() {
  listen_to_progress(
      [bar = std::shared_ptr<ProgressBar>(), shown = std::string()](std::string_view work, std::size_t done, std::size_t total) mutable {
        if (done >= total) return bar.reset();
        if (!bar || shown != work) bar = std::make_shared<ProgressBar>(shown = work);
        bar->update(done, total);
      });
}

}  // namespace rlx::command
