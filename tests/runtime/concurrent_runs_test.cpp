// Many threads on one program, on several programs of one session, and compiling at the same time.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace concurrent_runs_test {

constexpr int thread_count = 8, runs_each = 20;

SessionOptions two_threads() {
  SessionOptions options;
  options.threads = 2;
  options.cache_folder = "";
  return options;
}

/// Calls `body(thread)` on every thread at once; exceptions are failures.
template <class Body>
void on_all_threads(const Body& body) {
  std::vector<std::thread> threads;
  std::atomic<int> ready = 0;
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < thread_count) std::this_thread::yield();
      try {
        body(t);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

/// y = row sums of x w * scale + 1, through a product with packed weights and two further launches. With x all v and w all 1 over depth
/// 64 and 64 columns: y = 64 * (64 v scale + 1), exact in f32 for small integers.
Graph product(double scale) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 32), 64}, f32), w = graph.param("w", {64, 64}, f32);
  const Value h = matmul(x, w) * scale + 1;
  graph.output("y", sum(h, {1}));
  graph.output("largest", reduce_max(h, {0, 1}));
  return graph;
}

void expect_product(const Executable& program, double scale, int seed) {
  const std::int64_t batch = 1 + seed % 32;
  const float v = static_cast<float>(1 + seed % 7);
  Array x(f32, {batch, 64});
  for (float& element : x.mutable_values<float>()) element = v;
  const Outputs outputs = program.run({{"x", x}});
  const float h = static_cast<float>(64 * v * scale + 1);
  ASSERT_EQ(outputs.at("y").shape(), std::vector<std::int64_t>{batch});
  for (float y : outputs.at("y").values<float>()) ASSERT_EQ(y, 64 * h);
  ASSERT_EQ(outputs.at("largest").values<float>()[0], h);
}

TEST(ConcurrentRuns, OneProgram) {
  const Session session(Device::cpu(), two_threads());
  const std::vector<float> ones(64 * 64, 1);
  Executable program = session.compile(product(2));
  program.set_param("w", ones);
  on_all_threads([&](int t) {
    for (int i = 0; i < runs_each; ++i) expect_product(program, 2, t * 31 + i);
  });
}

TEST(ConcurrentRuns, StatesLoseNoUpdate) {
  const Session session(Device::cpu(), two_threads());
  Graph graph;
  const Value count = graph.state("count", {}, f32);
  graph.output("count", count + 1);
  Executable program = session.compile(graph);
  on_all_threads([&](int) {
    for (int i = 0; i < runs_each; ++i) program.run({});
  });
  EXPECT_EQ(program.state("count").get_double(0), thread_count * runs_each);
}

/// The sum over the steps of a scan of x_t w: with w all 1, steps * 64 v. The regions are programs with packed weights of their own.
TEST(ConcurrentRuns, OneProgramWithALoop) {
  const Session session(Device::cpu(), two_threads());
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("S", 32), 4, 64}, f32), w = graph.param("w", {64, 64}, f32);
  const auto step = [&](const Values& carry, const Values& slice) { return std::pair{Values{carry[0] + matmul(slice[0], w)}, Values{}}; };
  graph.output("y", scan(step, {sum(x, {0}) * 0}, {x})[0]);
  Executable program = session.compile(graph);
  const std::vector<float> ones(64 * 64, 1);
  program.set_param("w", ones);
  on_all_threads([&](int t) {
    for (int i = 0; i < runs_each; ++i) {
      const std::int64_t steps = 1 + (t * 31 + i) % 32;
      const auto v = static_cast<float>(1 + i % 7);
      Array values(f32, {steps, 4, 64});
      for (float& element : values.mutable_values<float>()) element = v;
      const Array sums = program.run({{"x", values}}).at("y");
      for (float y : sums.values<float>()) ASSERT_EQ(y, static_cast<float>(steps) * 64 * v);
    }
  });
}

TEST(ConcurrentRuns, SeveralProgramsOfOneSession) {
  const Session session(Device::cpu(), two_threads());
  const std::vector<float> ones(64 * 64, 1);
  std::vector<Executable> programs;
  for (int p = 0; p < 4; ++p) {
    programs.push_back(session.compile(product(p + 1)));
    programs.back().set_param("w", ones);
  }
  on_all_threads([&](int t) {
    for (int i = 0; i < runs_each; ++i) {
      const int p = (t + i) % 4;
      expect_product(programs[static_cast<std::size_t>(p)], p + 1, t * 31 + i);
    }
  });
}

TEST(ConcurrentRuns, CompilingWhileOthersRun) {
  const Session session(Device::cpu(), two_threads());
  const std::vector<float> ones(64 * 64, 1);
  on_all_threads([&](int t) {
    for (int i = 0; i < 3; ++i) {
      Executable program = session.compile(product(1 + (t + i) % 5));
      program.set_param("w", ones);
      expect_product(program, 1 + (t + i) % 5, t * 31 + i);
    }
  });
}

TEST(ConcurrentRuns, SessionsOfTheirOwn) {
  const std::vector<float> ones(64 * 64, 1);
  on_all_threads([&](int t) {
    const Session session(Device::cpu(), two_threads());
    Executable program = session.compile(product(2));
    program.set_param("w", ones);
    expect_product(program, 2, t);
  });
}

/// A parameter that changes during runs: every result belongs to one of its values.
TEST(ConcurrentRuns, ParametersMayChangeBetweenRuns) {
  const Session session(Device::cpu(), two_threads());
  const std::vector<float> one(64 * 64, 1), two(64 * 64, 2);
  Executable program = session.compile(product(1));
  program.set_param("w", one);
  on_all_threads([&](int t) {
    for (int i = 0; i < runs_each; ++i) {
      if (t == 0) {
        program.set_param("w", i % 2 ? one : two);
        continue;
      }
      const Outputs y = program.run({{"x", Array::of<float>({1, 64}, std::vector<float>(64, 1))}});
      const float seen = y.at("largest").values<float>()[0];
      ASSERT_TRUE(seen == 65 || seen == 129) << seen;
    }
  });
}

/// First runs of a parameter that is prepared, as panels of a product and as a sum of e^w, while it changes: x is all 1, w all 0 or all 1.
TEST(ConcurrentRuns, WhatIsPreparedBelongsToOneValueOfAParameter) {
  const Session session(Device::cpu(), two_threads());
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 16), 64}, f32), w = graph.param("w", {64, 64}, bf16);
  graph.output("y", matmul(x, transpose(cast(w, f32), {1, 0})) + sum(exp(cast(w, f32)), {1}));
  const auto filled = [](double v) {
    Array array(bf16, {64, 64});
    for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, v);
    return array;
  };
  Executable program = session.compile(graph);
  program.set_param("w", filled(0));
  const double at_zero = 64, at_one = 64 + 64 * std::exp(1.0);
  on_all_threads([&](int t) {
    for (int i = 0; i < runs_each; ++i) {
      if (t == 0) {
        program.set_param("w", filled(i % 2));
        continue;
      }
      const Array y = program.run({{"x", Array::of<float>({4, 64}, std::vector<float>(256, 1))}}).at("y");
      const double seen = y.get_double(0);
      ASSERT_TRUE(std::abs(seen - at_zero) < 1e-3 || std::abs(seen - at_one) < 1e-3) << seen;  // sums of 64 terms up to e
      for (std::int64_t k = 1; k < y.size(); ++k) ASSERT_EQ(y.get_double(k), seen);
    }
  });
}

/// Eight rows that runs overwrite where they lie, one after the other. Whoever looks sees what whole runs left, and keeps it.
TEST(ConcurrentRuns, StatesProfilesAndTimelinesWaitForRuns) {
  const Session session(Device::cpu(), two_threads());
  constexpr std::int64_t rows = 8, columns = 4096;
  Graph graph;
  const Value state = graph.state("rows", {rows, columns}, f32), next = graph.input("next", {rows, columns}, f32);
  const Value zero = graph.input("zero", {}, i32);
  graph.output("rows", dynamic_update(state, next + 1, {zero, zero}));
  graph.output("sum", sum(state, {0, 1}));
  const Executable program = session.compile(graph);
  const auto feeds = [&](float v) {
    return std::map<std::string, Feed>{{"next", Array::of<float>({rows, columns}, std::vector<float>(rows * columns, v))},
                                       {"zero", Array::of<std::int32_t>({}, std::vector<std::int32_t>{0})}};
  };
  on_all_threads([&](int t) {
    for (int i = 0; i < runs_each; ++i) {
      if (t % 4 == 0) {
        const Array seen = program.state("rows");
        const float first = seen.values<float>()[0];
        for (int again = 0; again < 2; ++again, std::this_thread::yield())
          for (const float x : seen.values<float>()) ASSERT_EQ(x, first);
      } else if (t % 4 == 1) {
        ASSERT_FALSE(program.profile(feeds(-1), 1).empty());
      } else if (t % 4 == 2) {
        ASSERT_FALSE(program.trace(feeds(-1), 1).empty());
      } else {
        program.run(feeds(static_cast<float>(t * runs_each + i)));
      }
    }
  });
}

}  // namespace concurrent_runs_test
}  // namespace rlx::test
