#pragma once
#include <filesystem>
#include <vector>

namespace rlx {

/// The CPUs of each memory node of the machine, in ascending order, without nodes that have none; empty where the system does not tell.
/// `folder` is one like /sys/devices/system/node.
std::vector<std::vector<int>> memory_nodes(const std::filesystem::path& folder = "/sys/devices/system/node");

/// The node of each worker of a pool: workers that follow each other share a node, as many on each as it has of all CPUs. Expects a node.
std::vector<std::size_t> nodes_of_workers(const std::vector<std::vector<int>>& nodes, int workers);

/// Lets the calling thread run on these CPUs only, as far as the process may use them: nothing changes where it may use none of them.
void stay_on(const std::vector<int>& cpus);

}  // namespace rlx
