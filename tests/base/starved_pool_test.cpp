// Not run under ThreadSanitizer, which delivers signals late.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <semaphore>
#include <thread>

#include "base/thread_pool.h"

namespace rlx {
namespace {

std::binary_semaphore worker_may_go_on{0};

/// A worker that has no CPU: a signal holds it until the test lets it go on.
TEST(StarvedPool, DoesNotWaitForAWorkerThatHasNotBegun) {
  ThreadPool pool(2);
  std::atomic<pthread_t> thread_of_worker{};
  std::atomic<bool> begun{false};
  pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int worker) {
    if (worker == 0) return begun.wait(false);
    thread_of_worker = pthread_self();
    begun = true;
    begun.notify_one();
  });
  struct sigaction hold{}, before{};
  hold.sa_handler = [](int) { worker_may_go_on.acquire(); };
  sigaction(SIGUSR1, &hold, &before);
  pthread_kill(thread_of_worker, SIGUSR1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the signal arrives
  std::atomic<int> parts_of_caller{0};
  const pthread_t caller = pthread_self();
  pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int) { parts_of_caller += pthread_equal(pthread_self(), caller) != 0; });
  EXPECT_EQ(parts_of_caller, 2);
  worker_may_go_on.release();
  std::atomic<int> parts{0};
  pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int) { ++parts; });
  EXPECT_EQ(parts, 2);
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace rlx
