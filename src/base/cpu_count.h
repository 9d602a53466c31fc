#pragma once
#include <filesystem>
#include <optional>
#include <string_view>

namespace rlx {

/// The CPUs this process may keep busy: the smaller of its scheduling affinity and its cgroup quota (rounded up), at least 1.
/// Asked of the system on every call, because both can change while the process runs.
int granted_cpus();

/// The quota in CPUs that a cgroup v2 `cpu.max` gives ("150000 100000" is 1.5); nothing for "max" or for text that is not a quota.
std::optional<double> parse_cpu_max(std::string_view text);

/// The tightest CPU quota over a process's cgroup (v2 or v1) and its ancestors; nothing when none is set.
/// `membership` is a file like /proc/self/cgroup, `mount` a folder like /sys/fs/cgroup.
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& membership, const std::filesystem::path& mount);

}  // namespace rlx
