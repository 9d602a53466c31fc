// Kernels are compiled by all threads of a pool.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <thread>

#include "backends/cpu/lower.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// The CPU time of each thread of a pool of two so far, in seconds.
std::array<double, 2> cpu_seconds(ThreadPool& pool) {
  std::array<double, 2> seconds{};
  std::atomic<int> arrived = 0;
  pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int worker) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();  // each thread is there once
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    seconds[static_cast<std::size_t>(worker)] = static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  });
  return seconds;
}

TEST(Jit, KernelsAreCompiledByAllThreads) {
  Graph graph;
  for (int i = 2; i < 42; ++i) {
    const std::string number = std::to_string(i);
    graph.output("y" + number, sin(tanh(graph.input("x" + number, {64}, f32)) * i));  // equal kernels would be one
  }
  cpu::Program program = cpu::lower(graph, {});
  std::vector<KernelText> texts;
  for (const cpu::GeneratedKernel* kernel : program.kernels()) texts.push_back(kernel->text);
  ASSERT_EQ(texts.size(), 40u);
  ThreadPool pool(2);
  cpu::Jit jit(cpu::cpu_level(), "");
  const auto before = cpu_seconds(pool);
  EXPECT_EQ(jit.load(texts, pool).size(), texts.size());
  const auto after = cpu_seconds(pool);
  EXPECT_EQ(jit.counters().compiled, 40);
  const double first = after[0] - before[0], second = after[1] - before[1];
  EXPECT_GT(std::min(first, second), 0.1 * (first + second)) << "of seconds, however late a busy machine starts the second thread";
}

}  // namespace
}  // namespace rlx
