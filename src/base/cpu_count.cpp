#include "base/cpu_count.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

namespace rlx {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The next whitespace-separated word, taken off the front of `text`.
std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\n"), text.size());
  const std::size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::optional<double> positive_number(std::string_view word) {
  long long value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || value <= 0) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> quota_v1(const fs::path& folder) {
  const std::string quota_text = read_text(folder / "cpu.cfs_quota_us");  // -1 where there is no limit
  const std::string period_text = read_text(folder / "cpu.cfs_period_us");
  std::string_view quota_view = quota_text, period_view = period_text;
  const std::optional<double> quota = positive_number(next_word(quota_view));
  const std::optional<double> period = positive_number(next_word(period_view));
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (a && b) return std::min(*a, *b);
  return a ? a : b;
}

/// A limit set on any ancestor binds too. A container often sees its own cgroup mounted as the root under a path that does not exist
/// inside; the walk then still ends at that root.
template <class Quota>
std::optional<double> tightest(const fs::path& root, std::string_view group, Quota quota) {
  std::optional<double> result = quota(root);
  fs::path folder = root;
  for (const fs::path& part : fs::path(group).relative_path()) result = smaller(result, quota(folder /= part));
  return result;
}

bool has_item(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

int affinity_cpus() {
#ifdef __linux__
  // The kernel refuses a mask smaller than its own, so it grows until it fits.
  for (std::size_t cpus = 1024; cpus <= 1024 * 1024; cpus *= 2) {
    std::vector<unsigned long> mask(cpus / (8 * sizeof(unsigned long)));
    const std::size_t bytes = mask.size() * sizeof(unsigned long);
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    if (sched_getaffinity(0, bytes, set) == 0) return CPU_COUNT_S(bytes, set);
  }
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

std::optional<double> parse_cpu_max(std::string_view text) {
  const std::optional<double> quota = positive_number(next_word(text));
  const std::optional<double> period = positive_number(next_word(text));
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

std::optional<double> cgroup_cpu_quota(const fs::path& membership, const fs::path& mount) {
  std::optional<double> result;
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {  // hierarchy:controllers:group, with no controllers in v2
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      result = smaller(result, tightest(mount, group, [](const fs::path& at) { return parse_cpu_max(read_text(at / "cpu.max")); }));
    } else if (has_item(controllers, "cpu")) {
      const fs::path joined = mount / controllers;  // "cpu,cpuacct" where they are mounted together
      std::error_code error;
      result = smaller(result, tightest(fs::exists(joined, error) ? joined : mount / "cpu", group, quota_v1));
    }
  }
  return result;
}

int granted_cpus() {
  int cpus = affinity_cpus();
#ifdef __linux__
  if (const auto quota = cgroup_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup")) {
    if (*quota < cpus) cpus = static_cast<int>(std::ceil(*quota));
  }
#endif
  return std::max(cpus, 1);
}

}  // namespace rlx
