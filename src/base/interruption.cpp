#include "base/interruption.h"

#include <chrono>
#include <utility>

#include "rlx/interruption.h"

namespace rlx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_checks(20);

thread_local Interruptible* innermost = nullptr;
thread_local Clock::time_point last_check;

}  // namespace

Interruptible::Interruptible(std::function<void()> check) : check_(std::move(check)), outer_(std::exchange(innermost, this)) {}
Interruptible::~Interruptible() { innermost = outer_; }

void check_interruption() {
  if (!innermost) return;
  const Clock::time_point now = Clock::now();
  if (now - last_check < between_checks) return;
  last_check = now;
  innermost->check_();
}

}  // namespace rlx
