// Children of a process that has compiled and run.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "rlx/graph_cache.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

TEST(Forked, ARunThatIsDoneHoldsNoChildBackWhoeverKeepsIt) {
  Graph graph;
  graph.output("y", sum(graph.input("x", {64, 64}, f32) + 1, {0, 1}));
  const Executable program = Session(Device::cpu(), {.threads = 2, .cache_folder = ""}).compile(graph);
  const Array x(f32, {64, 64});
  const PendingRun kept = program.run_async({{"x", x}});
  EXPECT_EQ(kept.results().at("y").get_double(0), 64 * 64);
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(program.run({{"x", x}}).at("y").get_double(0) == 64 * 64 ? 0 : 1);
    } catch (const Error&) {
      _exit(2);
    }
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// It computes, or has an Error, but does not wait for ever, whatever lock the thread that is not there holds.
TEST(Forked, AChildEndsThoughAnotherThreadLooksForItsGraphAtThatTime) {
  Graph graph;
  Value x = graph.input("x", {2}, f32);
  for (int i = 0; i < 3000; ++i) x = x * 0.5 + i;
  graph.output("y", x);
  GraphCache cache(Session(Device::cpu(), {.threads = 1, .cache_folder = ""}));
  cache.compile(graph);
  std::atomic<bool> ends = false;
  std::thread other([&] {
    while (!ends) cache.compile(graph);
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      try {
        cache.compile(graph);
      } catch (const Error&) {
        _exit(1);
      }
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    if (!WIFEXITED(status)) break;
  }
  ends = true;
  other.join();
}

}  // namespace
}  // namespace rlx::test
