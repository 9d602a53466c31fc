// Kernels are compiled by as many threads as a pool has, which is free meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "backends/cpu/backend.h"
#include "lowering/lowering.h"
#include "rlx/error.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

double cpu_seconds(clockid_t of) {
  timespec time{};
  clock_gettime(of, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<KernelText> kernel_texts(int count) {
  Graph graph;
  for (int i = 2; i < count + 2; ++i) {
    const std::string number = std::to_string(i);
    graph.output("y" + number, sin(tanh(graph.input("x" + number, {64}, f32)) * i));  // equal kernels would be one
  }
  Program program = lower(graph, cpu::target_of());
  std::vector<KernelText> texts;
  for (const GeneratedKernel* kernel : program.kernels()) texts.push_back(kernel->text);
  return texts;
}

TEST(Jit, KernelsAreCompiledByAllThreads) {
  const std::vector<KernelText> texts = kernel_texts(40);
  ASSERT_EQ(texts.size(), 40u);
  const auto jit = cpu::backend().host_code(cpu::target_of(), {.cache_folder = ""}, 2);
  const double mine = cpu_seconds(CLOCK_THREAD_CPUTIME_ID), all = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  EXPECT_EQ(jit->load(texts, {}).size(), texts.size());
  const double own = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - mine, both = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - all;
  EXPECT_EQ(jit->counters().kernels_compiled, 40);
  EXPECT_GT(std::min(own, both - own), 0.1 * both) << "of seconds, however late a busy machine starts the second thread";
}

// A loop took as long as all of the compiling when that was a loop of the pool.
TEST(Jit, LoopsOfThePoolDoNotWaitForIt) {
  const std::vector<KernelText> texts = kernel_texts(40);
  const auto jit = cpu::backend().host_code(cpu::target_of(), {.cache_folder = ""}, 2);
  std::atomic<bool> compiles = true;
  std::thread other([&] {
    jit->load(texts, {});
    compiles = false;
  });
  bool between = false;  // a loop began behind the first kernel and ended before the last
  while (compiles) {
    const bool begun = jit->counters().kernels_compiled > 0;
    jit->pool.parallel_for(2, 1, [](std::int64_t, std::int64_t, int) {});
    between |= begun && jit->counters().kernels_compiled < std::ssize(texts);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  other.join();
  EXPECT_TRUE(between);
}

TEST(Jit, WhatCannotBeCompiledIsAnErrorOfTheCaller) {
  const auto jit = cpu::backend().host_code(cpu::target_of(), {.cache_folder = ""}, 2);
  std::vector<KernelText> texts = kernel_texts(4);
  texts[2].text = "no kernel";
  EXPECT_THROW(jit->load(texts, {}), InternalError);
}

}  // namespace
}  // namespace rlx
