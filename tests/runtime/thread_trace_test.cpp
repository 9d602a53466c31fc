// The timeline of a run: what it says must fit together.
#include <gtest/gtest.h>

#include <thread>

#include "base/thread_pool.h"
#include "ops/evaluated.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

/// Two products and a softmax of parameters' products, on two threads.
Executable program() {
  Graph graph("trace");
  const Value x = graph.input("x", {256, 128}, f32), w = graph.param("w", {128, 128}, f32);
  graph.output("y", softmax(matmul(tanh(matmul(x, exp(w))), w), 1));
  SessionOptions options;
  options.cache_folder = "";
  options.threads = 2;
  Executable program = Session(Device::cpu(), options).compile(graph);
  program.set_param("w", uniform(f32, {128, 128}, -1, 1, 1));
  return program;
}

TEST(Trace, SharesLieWithinTheirLaunch) {
  const Executable traced = program();
  const std::map<std::string, Feed> inputs{{"x", uniform(f32, {256, 128}, -1, 1, 2)}};
  const auto launches = traced.profile(inputs, 0);
  std::map<std::size_t, TraceEvent> whole;
  std::set<int> threads;
  double last = 0;
  for (const TraceEvent& event : traced.trace(inputs, 3)) {
    ASSERT_LT(event.launch, launches.size());
    EXPECT_LE(event.begin, event.end);
    if (event.whole) {
      EXPECT_EQ(event.thread, 0);
      EXPECT_GE(event.begin, last) << "launches follow each other";
      last = event.end;
      EXPECT_TRUE(whole.emplace(event.launch, event).second) << "each launch once";
      continue;
    }
    ASSERT_TRUE(whole.count(event.launch));
    EXPECT_GE(event.begin, whole[event.launch].begin);
    EXPECT_LE(event.end, whole[event.launch].end);
    threads.insert(event.thread);
  }
  EXPECT_EQ(threads, (std::set<int>{0, 1}));
  for (std::size_t i = 0; i < launches.size(); ++i) EXPECT_EQ(whole.count(i), launches[i].kind == "prepared" ? 0u : 1u) << launches[i].name;
}

TEST(Trace, NotesTheLoopsOfItsThreadWhileItLives) {
  ThreadPool pool(2);
  const auto loop = [&] { pool.parallel_for(2, 1, [](std::int64_t, std::int64_t, int) {}); };
  LoopRecord record(2);
  {
    const RecordLoops recording(record);
    loop();
    std::thread(loop).join();
  }
  loop();
  for (const auto& intervals : record.of_worker) EXPECT_EQ(intervals.size(), 1u);
}

TEST(Trace, NoRunsGiveNoEvents) { EXPECT_TRUE(program().trace({{"x", uniform(f32, {256, 128}, -1, 1, 2)}}, 0).empty()); }

}  // namespace
}  // namespace rlx::test
