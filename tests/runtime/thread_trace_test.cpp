// The timeline of a run: what it says must fit together. And which runs share loops among threads at all.
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

/// A layer with a norm and attention over `rows` tokens, 32 wide, on four threads; with the loops that its first run shares among them, in
/// which weights are packed, and its second.
std::pair<std::size_t, std::size_t> shared_loops(std::int64_t rows, Precision precision) {
  Graph graph("layer");
  const Value x = graph.input("x", {rows, 32}, f32);
  const auto linear = [&](const char* name, const Value& v, std::int64_t in, std::int64_t out) {
    return matmul(v, graph.param(name, {in, out}, f32));
  };
  const auto heads = [&](const Value& v) { return transpose(reshape(v, {1, rows, 4, 8}), {0, 2, 1, 3}); };
  const Value q = heads(linear("q", x, 32, 32)), k = heads(linear("k", x, 32, 32)), v = heads(linear("v", x, 32, 32));
  const Value seen = rms_norm(x + reshape(transpose(attention(q, k, v), {0, 2, 1, 3}), {rows, 32}), graph.param("scale", {32}, f32));
  graph.output("y", softmax(linear("down", gelu(linear("up", seen, 32, 64)), 64, 32), 1));
  Executable program = Session(Device::cpu(), {.threads = 4, .precision = precision, .cache_folder = ""}).compile(graph);
  for (const char* name : {"q", "k", "v"}) program.set_param(name, uniform(f32, {32, 32}, -1, 1, 1));
  program.set_param("up", uniform(f32, {32, 64}, -1, 1, 2));
  program.set_param("down", uniform(f32, {64, 32}, -1, 1, 3));
  program.set_param("scale", uniform(f32, {32}, 0, 1, 4));
  const Array values = uniform(f32, {rows, 32}, -1, 1, 5);
  const auto loops_of_a_run = [&] {
    LoopRecord record(4);
    const RecordLoops recording(record);
    program.run({{"x", values}});
    return record.of_worker[0].size();  // the caller has a part in each
  };
  const std::size_t first = loops_of_a_run();
  return {first, loops_of_a_run()};
}

/// A loop that is not shared starts no thread's work and wakes none.
TEST(SharedLoops, SmallGraphsRunOnTheCallingThread) {
  for (Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
    EXPECT_EQ(shared_loops(4, precision), (std::pair<std::size_t, std::size_t>{0, 0})) << "precision " << static_cast<int>(precision);
    EXPECT_GT(shared_loops(1024, precision).second, 3U) << "precision " << static_cast<int>(precision);
  }
}

TEST(Trace, NoRunsGiveNoEvents) { EXPECT_TRUE(program().trace({{"x", uniform(f32, {256, 128}, -1, 1, 2)}}, 0).empty()); }

}  // namespace
}  // namespace rlx::test
