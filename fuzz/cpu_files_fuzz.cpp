// What Linux says of memory nodes and of quotas of CPUs.
#include <cstdint>

#include "base/cpu_count.h"
#include "base/topology.h"
#include "fuzz_folder.h"
#include "parts.h"

/// The input is the files, with zero bytes between.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"online", "node0/cpulist", "node1/cpulist", "membership", "cpu.max", "group/cpu.max", "cpu/cpu.cfs_quota_us",
                           "cpu/cpu.cfs_period_us"})
    folder.write(name, rlx::fuzz::take_part(rest));
  const auto nodes = rlx::memory_nodes(folder.path());
  for (const std::vector<int>& cpus : nodes)
    if (cpus.empty() || cpus.front() < 0 || cpus.back() >= 1024) __builtin_trap();
  if (!nodes.empty() && rlx::nodes_of_workers(nodes, 5).back() >= nodes.size()) __builtin_trap();
  if (const auto quota = rlx::cgroup_cpu_quota(folder.path() / "membership", folder.path()); quota && !(*quota > 0)) __builtin_trap();
  return 0;
}
