#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/cpu_count.h"
#include "rlx/error.h"

namespace {

namespace fs = std::filesystem;
using rlx::ThreadPool;

/// How often each index was visited by a loop.
std::vector<int> visits(ThreadPool& pool, std::int64_t count, std::int64_t grain) {
  std::vector<int> seen(static_cast<std::size_t>(count));
  pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
  });
  return seen;
}

void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

/// Keeps the thread busy for many times the microseconds that an idle thread of a pool spins.
void outlast_spinning() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

/// A folder of the test's own, also where the same tests run for another CPU beside it.
struct Folder {
  fs::path path =
      fs::path(testing::TempDir()) / fmt::format("rlx_{}_{}", testing::UnitTest::GetInstance()->current_test_info()->name(), getpid());
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

TEST(ThreadPool, VisitsEveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (std::int64_t count : {0, 1, 2, 3, 7, 8, 100, 1001}) {
      for (std::int64_t grain : {1, 2, 3, 64, 5000}) {
        EXPECT_EQ(visits(pool, count, grain), std::vector<int>(static_cast<std::size_t>(count), 1))
            << threads << " threads, count " << count << ", grain " << grain;
      }
    }
  }
}

TEST(ThreadPool, CutsIntoWholeGrainsTheSameWayEveryTime) {
  ThreadPool pool(3);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges(3);
    pool.parallel_for(25, 4,
                      [&](std::int64_t begin, std::int64_t end, int worker) { ranges[static_cast<std::size_t>(worker)] = {begin, end}; });
    EXPECT_EQ(ranges, (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 12}, {12, 20}, {20, 25}}));
  }
}

TEST(ThreadPool, RunsOneGrainOnTheCallingThread) {
  ThreadPool pool(4);
  std::thread::id ran;
  pool.parallel_for(10, 10, [&](std::int64_t, std::int64_t, int) { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(ThreadPool, UsesAllItsThreadsAtOnce) {
  ThreadPool pool(3);
  std::atomic<int> arrived{0};
  pool.parallel_for(3, 1, [&](std::int64_t, std::int64_t, int) {
    ++arrived;
    while (arrived.load() < 3) std::this_thread::yield();  // ends only when three threads are here
  });
  EXPECT_EQ(arrived.load(), 3);
}

/// The CPUs that this thread may run on.
std::vector<int> own_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

/// Nodes that the test makes up, of one CPU each: memory that a worker touches first is then on the node that it runs on.
TEST(ThreadPool, WorkersStayOnTheCpusOfTheirNodes) {
  using Cpus = std::vector<int>;
  const Cpus all = own_cpus();
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  ThreadPool pool(4, nullptr, {{all[0]}, {all[1]}});
  std::vector<Cpus> cpus(4);
  std::atomic<int> arrived{0};
  pool.parallel_for(4, 1, [&](std::int64_t begin, std::int64_t, int) {
    cpus[static_cast<std::size_t>(begin)] = own_cpus();
    ++arrived;
    while (arrived.load() < 4) std::this_thread::yield();  // so that none runs the part of another
  });
  EXPECT_EQ(cpus, (std::vector<Cpus>{all, {all[0]}, {all[1]}, {all[1]}})) << "the caller goes where it likes";
}

TEST(ThreadPool, RunsNestedLoopsInlineUnderTheSameWorker) {
  ThreadPool pool(3), other(2);
  std::atomic<int> inner{0}, moved{0};
  pool.parallel_for(6, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    const auto thread = std::this_thread::get_id();
    for (std::int64_t i = begin; i < end; ++i) {
      pool.parallel_for(10, 1, [&](std::int64_t from, std::int64_t to, int same) {
        inner += static_cast<int>(to - from);
        moved += same != worker || std::this_thread::get_id() != thread;
      });
      other.parallel_for(5, 1, [&](std::int64_t from, std::int64_t to, int) { inner += static_cast<int>(to - from); });
    }
  });
  EXPECT_EQ(inner.load(), 6 * 15);
  EXPECT_EQ(moved.load(), 0);
}

TEST(ThreadPool, TakesLoopsFromManyThreads) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 200; ++repeat) {
        pool.parallel_for(50, 1, [&](std::int64_t begin, std::int64_t end, int) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4 * 200 * 50);
}

/// A loop of another thread holds the workers until the caller's loops are done: they need no turn.
TEST(ThreadPool, ACallerWhoseTurnHasNotComeWorksAlone) {
  ThreadPool pool(2);
  std::atomic<bool> begun = false, ends = false;
  std::thread other([&] {
    pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int) {
      begun = true;
      while (!ends) std::this_thread::yield();
    });
  });
  while (!begun) std::this_thread::yield();
  const std::vector<int> once(1001, 1);
  for (std::int64_t grain : {1, 3, 64, 600}) EXPECT_EQ(visits(pool, 1001, grain), once);
  ends = true;
  other.join();
}

TEST(ThreadPool, ACallerThatBeganAloneSharesWhatIsLeft) {
  ThreadPool pool(2);
  std::atomic<bool> begun = false, ends = false, other_ended = false, together = false;
  std::thread other([&] {
    pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int) {
      begun = true;
      while (!ends) std::this_thread::yield();
    });
    other_ended = true;
  });
  while (!begun) std::this_thread::yield();
  std::vector<std::atomic<int>> visited(1000);
  const auto caller = std::this_thread::get_id();
  pool.parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    for (std::int64_t i = begin; i < end; ++i) ++visited[static_cast<std::size_t>(i)];
    ends = true;
    while (!other_ended) std::this_thread::yield();
    if (begin > 0 && worker == 0)  // the caller's share of the rest: it ends when the worker has come to the other
      while (!together) std::this_thread::yield();
    if (std::this_thread::get_id() != caller) together = true;
  });
  EXPECT_TRUE(together);
  for (const std::atomic<int>& visit : visited) EXPECT_EQ(visit, 1);
  other.join();
}

TEST(ThreadPool, RethrowsTheExceptionOfTheLowestWorkerAndStaysUsable) {
  ThreadPool pool(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    try {
      pool.parallel_for(3, 1, [](std::int64_t, std::int64_t, int worker) {
        if (worker > 0) throw std::runtime_error("worker " + std::to_string(worker));
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "worker 1");
    }
    EXPECT_EQ(visits(pool, 30, 1), std::vector<int>(30, 1));
  }
  EXPECT_THROW(pool.parallel_for(3, 1,
                                 [](std::int64_t, std::int64_t, int worker) {
                                   if (worker == 0) throw std::logic_error("caller");
                                 }),
               std::logic_error);
}

TEST(ThreadPool, VisitsEveryIndexOnceInPieces) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (std::int64_t count : {0, 1, 2, 7, 100, 1001})
      for (std::int64_t grain : {1, 3, 64})
        for (std::int64_t piece : {1, 2, 5, 2000}) {
          std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
          pool.parallel_pieces(count, grain, piece, [&](std::int64_t begin, std::int64_t end, int worker) {
            EXPECT_TRUE(begin < end && worker >= 0 && worker < threads);
            for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
          });
          for (const std::atomic<int>& visits : seen)
            EXPECT_EQ(visits.load(), 1) << threads << " threads, count " << count << ", grain " << grain << ", piece " << piece;
        }
  }
}

TEST(ThreadPool, GivesPiecesThatAWorkerDoesNotComeToToTheOthers) {
  ThreadPool pool(3);
  constexpr int pieces = 50;
  std::atomic<int> done{0};
  bool others_are_done = false;
  pool.parallel_pieces(pieces, 1, 1, [&](std::int64_t begin, std::int64_t, int) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begin == 3 && done < pieces - 1 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    if (begin == 3) others_are_done = done == pieces - 1;
    ++done;
  });
  EXPECT_TRUE(others_are_done);
}

TEST(ThreadPool, EndsALoopInPiecesThatThrowsAndStaysUsable) {
  ThreadPool pool(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto all_throw = [](std::int64_t, std::int64_t, int) { throw std::runtime_error("piece"); };
    EXPECT_THROW(pool.parallel_pieces(30, 1, 1, all_throw), std::runtime_error);
    std::atomic<std::int64_t> visited{0};
    pool.parallel_pieces(30, 1, 4, [&](std::int64_t begin, std::int64_t end, int) { visited += end - begin; });
    EXPECT_EQ(visited.load(), 30);
  }
}

TEST(ThreadPool, ReadsAheadWithoutReading) {
  ThreadPool pool(2);
  const std::span<const std::byte> nowhere(reinterpret_cast<const std::byte*>(std::uintptr_t{4096}), std::size_t{1} << 30);
  const std::vector<std::byte> somewhere(1 << 20);
  using Pieces = std::vector<std::span<const std::byte>>;
  for (const Pieces& pieces : {Pieces{nowhere}, Pieces{somewhere}, Pieces{somewhere, nowhere, {}}, Pieces(100, somewhere), Pieces{}}) {
    pool.read_ahead(pieces);
    for (int loop = 0; loop < 100; ++loop) EXPECT_EQ(visits(pool, 8, 1), std::vector<int>(8, 1));
  }
}

TEST(ThreadPool, WorksWithMoreThreadsThanCpus) {
  ThreadPool pool(rlx::granted_cpus() + 6);
  for (int repeat = 0; repeat < 100; ++repeat) EXPECT_EQ(visits(pool, 1000, 1), std::vector<int>(1000, 1));
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  ThreadPool pool(2);
  for (int repeat = 0; repeat < 20; ++repeat) {
    outlast_spinning();  // the worker sleeps now; the caller below will, as its worker is slow
    std::atomic<bool> begun{false};
    pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int worker) {
      if (worker == 0) return begun.wait(false);  // the caller does not come to the worker's part
      begun = true;
      begun.notify_one();
      outlast_spinning();
    });
    EXPECT_TRUE(begun.load());
  }
}

std::chrono::nanoseconds cpu_time_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// The CPU time of a caller that waits for its worker, over the time that it waits.
TEST(ThreadPool, LeavesItsCpuToAWorkerThatHasNone) {
  using Clock = std::chrono::steady_clock;
  ThreadPool pool(2);
  const auto wait_for_worker = [&](std::chrono::microseconds time) {
    std::atomic<bool> begun{false};
    pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t, int worker) {
      if (worker == 0) return begun.wait(false);
      begun = true;
      begun.notify_one();
      const auto end = Clock::now() + time;
      while (worker == 1 && Clock::now() < end) std::this_thread::yield();
    });
  };
  wait_for_worker(std::chrono::milliseconds(5));  // as when another process has its CPU
  const auto begin = Clock::now();
  const auto used = cpu_time_of_this_thread();
  for (int repeat = 0; repeat < 20; ++repeat) wait_for_worker(std::chrono::microseconds(200));  // less than a thread spins
  EXPECT_LT(cpu_time_of_this_thread() - used, (Clock::now() - begin) / 2);
}

TEST(ThreadPool, EndsWhileItsWorkersSleepOrSpin) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    ThreadPool pool(4);
    if (repeat % 2 == 0) continue;
    EXPECT_EQ(visits(pool, 8, 1), std::vector<int>(8, 1));
  }
}

TEST(ThreadPool, RefusesBadArguments) {
  EXPECT_THROW(ThreadPool(0), rlx::Error);
  EXPECT_THROW(ThreadPool(-1), rlx::Error);
  EXPECT_THROW(ThreadPool(ThreadPool::max_threads + 1), rlx::Error);
  ThreadPool pool(2);
  const auto body = [](std::int64_t, std::int64_t, int) {};
  EXPECT_THROW(pool.parallel_for(-1, 1, body), rlx::Error);
  EXPECT_THROW(pool.parallel_for(5, 0, body), rlx::Error);
  EXPECT_THROW(pool.parallel_pieces(-1, 1, 1, body), rlx::Error);
  EXPECT_THROW(pool.parallel_pieces(5, 0, 1, body), rlx::Error);
  EXPECT_THROW(pool.parallel_pieces(5, 1, 0, body), rlx::Error);
  EXPECT_THROW(pool.parallel_pieces(std::int64_t{1} << 32, 1, 1, body), rlx::Error);
}

TEST(CpuCount, GrantsAtLeastOneAndNoMoreThanThereAre) {
  EXPECT_GE(rlx::granted_cpus(), 1);
  EXPECT_LE(rlx::granted_cpus(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(CpuCount, ReadsQuotas) {
  EXPECT_EQ(rlx::parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(rlx::parse_cpu_max("max 100000\n"), std::nullopt);
  for (const char* text : {"", "5", "5 0", "-5 5", "5x 5", "99999999999999999999 1"})
    EXPECT_EQ(rlx::parse_cpu_max(text), std::nullopt) << text;
}

TEST(CpuCount, TakesTheTightestQuotaOfACgroupAndItsAncestors) {
  const Folder folder;
  write(folder.path / "membership", "0::/a/b\n");
  EXPECT_EQ(rlx::cgroup_cpu_quota(folder.path / "membership", folder.path), std::nullopt);
  write(folder.path / "a/cpu.max", "200000 100000\n");
  write(folder.path / "a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(rlx::cgroup_cpu_quota(folder.path / "membership", folder.path), 2.0);
  write(folder.path / "a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(rlx::cgroup_cpu_quota(folder.path / "membership", folder.path), 0.5);
}

TEST(CpuCount, ReadsTheFirstCgroupVersionAlsoWhereTheGroupIsTheRoot) {
  const Folder folder;
  write(folder.path / "membership", "5:memory:/x\n4:cpu,cpuacct:/not/visible/here\n");
  write(folder.path / "cpu/cpu.cfs_quota_us", "300000\n");
  write(folder.path / "cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(rlx::cgroup_cpu_quota(folder.path / "membership", folder.path), 3.0);
  write(folder.path / "membership", "4:cpu," + std::string(300, 'x') + ":/\n");  // longer than names may be
  EXPECT_EQ(rlx::cgroup_cpu_quota(folder.path / "membership", folder.path), 3.0);
  write(folder.path / "cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(rlx::cgroup_cpu_quota(folder.path / "membership", folder.path), std::nullopt);
}

/// A quota of the kernel's own, where it lets the test make a cgroup; others are files of the test, above.
TEST(CpuCount, ALiveQuotaBindsAProcess) {
  struct Cgroup {
    fs::path path = fs::path("/sys/fs/cgroup/cpu") / ("rlx_test_" + std::to_string(getpid()));
    bool made = mkdir(path.c_str(), 0700) == 0;
    ~Cgroup() {
      if (made) rmdir(path.c_str());
    }
  } const group;
  const bool has_quota = group.made && (std::ofstream(group.path / "cpu.cfs_quota_us") << "100000" << std::flush);
  if (!has_quota) GTEST_SKIP() << "no cgroup with a quota can be made here";
  const pid_t child = fork();
  if (child == 0) {
    const bool joined = static_cast<bool>(std::ofstream(group.path / "cgroup.procs") << getpid() << std::flush);
    _exit(joined ? rlx::granted_cpus() : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
