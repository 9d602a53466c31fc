#include "base/working.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <string_view>

#include "rlx/error.h"

namespace rlx::test {
namespace {

/// What a child of the process says of itself.
bool of_child(const std::function<bool()>& is_so) {
  const pid_t child = fork();
  if (child == 0) _exit(is_so() ? 0 : 1);
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

bool is_refused() {
  try {
    const Working working;
    return false;
  } catch (const Error& error) {
    return std::string_view(error.what()).starts_with("this process was forked while another thread");
  }
}

TEST(Working, AChildOfAProcessWithoutWorkWorks) {
  {
    const Working before;
  }
  EXPECT_TRUE(of_child([] { return !is_refused(); }));
}

TEST(Working, AChildOfAProcessAtWorkRefusesToWorkAndItsChildrenToo) {
  std::promise<void> begun, ended;
  const auto other = std::async(std::launch::async, [&] {
    const Working working;
    begun.set_value();
    ended.get_future().wait();
  });
  begun.get_future().wait();
  EXPECT_TRUE(of_child(is_refused));
  EXPECT_TRUE(of_child([] { return of_child(is_refused); }));
  ended.set_value();
  other.wait();
  EXPECT_TRUE(of_child([] { return !is_refused(); }));
}

}  // namespace
}  // namespace rlx::test
