// Memory nodes, of folders that the test makes, and the node of each worker.
#include "base/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <thread>

#include "formats/temporary_folder.h"

namespace rlx::test {
namespace {

using Nodes = std::vector<std::vector<int>>;

struct FakeSystem {
  TemporaryFolder folder;
  explicit FakeSystem(const std::vector<std::pair<std::string, std::string>>& files) {
    for (const auto& [name, text] : files) {
      std::filesystem::create_directories((folder / name).parent_path());
      std::ofstream(folder / name) << text << '\n';
    }
  }
  Nodes nodes() const { return memory_nodes(folder.path()); }
};

TEST(Topology, ReadsTheCpusOfEachNode) {
  EXPECT_EQ(FakeSystem({{"online", "0-1"}, {"node0/cpulist", "0-2,8"}, {"node1/cpulist", "3,5-6"}}).nodes(),
            (Nodes{{0, 1, 2, 8}, {3, 5, 6}}));
  EXPECT_EQ(FakeSystem({{"online", "0,2"}, {"node0/cpulist", "0"}, {"node2/cpulist", ""}}).nodes(), (Nodes{{0}})) << "memory without CPUs";
}

TEST(Topology, WhatIsNoListIsNoNode) {
  EXPECT_EQ(FakeSystem({}).nodes(), Nodes());
  for (const char* text : {"x", "0-", "3-1", "-1", "0,,1", "0 1", "0-99999", "99999999999", "0,", "0-9,9", "3,1"})
    EXPECT_EQ(FakeSystem({{"online", "0"}, {"node0/cpulist", text}}).nodes(), Nodes()) << text;
}

TEST(Topology, WorkersThatFollowEachOtherShareANode) {
  const Nodes equal{{0, 1}, {2, 3}}, uneven{{0, 1, 2}, {3}};
  EXPECT_EQ(nodes_of_workers(equal, 4), (std::vector<std::size_t>{0, 0, 1, 1}));
  EXPECT_EQ(nodes_of_workers(equal, 2), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(nodes_of_workers(equal, 1), (std::vector<std::size_t>{0}));
  EXPECT_EQ(nodes_of_workers(equal, 6), (std::vector<std::size_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(nodes_of_workers(uneven, 4), (std::vector<std::size_t>{0, 0, 0, 1}));
}

TEST(Topology, AThreadStaysOnTheCpusThatTheProcessMayUse) {
  const auto cpus_after = [](const std::vector<int>& wanted) {
    cpu_set_t set;
    std::thread([&] {
      stay_on(wanted);
      sched_getaffinity(0, sizeof set, &set);
    }).join();
    return CPU_COUNT(&set);
  };
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  int one = 0, other = 0;
  while (!CPU_ISSET(one, &mine)) ++one;
  while (CPU_ISSET(other, &mine)) ++other;
  EXPECT_EQ(cpus_after({one}), 1);
  EXPECT_EQ(cpus_after({other}), CPU_COUNT(&mine));
  EXPECT_EQ(cpus_after({one, other}), 1);
}

}  // namespace
}  // namespace rlx::test
