// Children of a process that has compiled and run.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace
}  // namespace rlx::test
