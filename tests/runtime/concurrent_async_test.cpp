// Runs that are asked for and awaited later.
#include <gtest/gtest.h>

#include "message.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

SessionOptions without_disk() {
  SessionOptions options;
  options.threads = 2;
  options.cache_folder = "";
  return options;
}

TEST(AsyncRuns, SeveralAreGoingOn) {
  Graph graph;
  graph.output("y", sum(exp(graph.input("x", {64, 256}, f32)) * 0 + graph.input("k", {}, f32), {0, 1}));
  const Executable program = Session(Device::cpu(), without_disk()).compile(graph);
  const Array x(f32, {64, 256});
  std::vector<PendingRun> runs;
  for (int i = 0; i < 8; ++i) runs.push_back(program.run_async({{"x", x}, {"k", Array::of(f32, {}, std::vector<float>{float(i)})}}));
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(runs[static_cast<std::size_t>(i)].results().at("y").get_double(0), 64 * 256 * i);
    EXPECT_TRUE(runs[static_cast<std::size_t>(i)].ready());
  }
}

Graph counter() {
  Graph graph("counter");
  const Value next = graph.state("count", {}, f32) + graph.input("by", {}, f32);
  graph.output("count", next);
  graph.output("seen", next * 1);
  return graph;
}

Array number(float value) { return Array::of(f32, {}, std::vector<float>{value}); }

TEST(AsyncRuns, OfAGraphWithStatesKeepTheirOrder) {
  const Executable program = Session(Device::cpu(), without_disk()).compile(counter());
  std::vector<PendingRun> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(program.run_async({{"by", number(1)}}));
  EXPECT_EQ(program.run({{"by", number(1)}}).at("seen").get_double(0), 21);  // it waits for those before
  for (int i = 0; i < 20; ++i) EXPECT_EQ(runs[static_cast<std::size_t>(i)].results().at("seen").get_double(0), i + 1);
}

TEST(AsyncRuns, OneThatFailsTellsWhoWaitsAndLetsTheNextRun) {
  const Executable program = Session(Device::cpu(), without_disk()).compile(counter());
  const PendingRun wrong = program.run_async({{"bye", number(1)}}), right = program.run_async({{"by", number(2)}});
  EXPECT_NE(error_of([&] { wrong.wait(); }).find("'by'"), std::string::npos);
  EXPECT_EQ(right.results().at("seen").get_double(0), 2);
}

TEST(AsyncRuns, OutliveTheirProgram) {
  std::vector<float> seen(1);
  std::optional<PendingRun> run;
  {
    const Executable program = Session(Device::cpu(), without_disk()).compile(counter());
    run = program.run_async({{"by", number(3)}}, {{"seen", seen}});
  }
  run->wait();
  EXPECT_EQ(seen[0], 3);
}

}  // namespace
}  // namespace rlx::test
