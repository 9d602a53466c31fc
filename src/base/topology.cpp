#include "base/topology.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#ifdef __linux__
#include <sched.h>
#endif

namespace rlx {
namespace {

constexpr int most_cpus = 1024;  // of a mask of the C library

/// The number at the front of `text`, which it is taken off; -1 where there is none.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// "0-3,8,10-11" as numbers; empty for text that is no such list, whose numbers ascend.
std::vector<int> parse_list(std::string_view text) {
  std::vector<int> numbers;
  for (bool more = !text.empty(); more;) {
    const int first = take_number(text);
    int last = first;
    if (text.starts_with('-')) text.remove_prefix(1), last = take_number(text);
    if (first < 0 || last < first || last >= most_cpus || (!numbers.empty() && first <= numbers.back())) return {};
    for (int number = first; number <= last; ++number) numbers.push_back(number);
    more = text.starts_with(',');
    if (more) text.remove_prefix(1);
    else if (!text.empty()) return {};
  }
  return numbers;
}

/// The first line of a file; empty where there is none.
std::string line_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::vector<std::vector<int>> memory_nodes(const std::filesystem::path& folder) {
  std::vector<std::vector<int>> nodes;
  for (int node : parse_list(line_of(folder / "online"))) {
    std::vector<int> cpus = parse_list(line_of(folder / ("node" + std::to_string(node)) / "cpulist"));
    if (!cpus.empty()) nodes.push_back(std::move(cpus));
  }
  return nodes;
}

std::vector<std::size_t> nodes_of_workers(const std::vector<std::vector<int>>& nodes, int workers) {
  std::size_t all = 0;
  for (const std::vector<int>& cpus : nodes) all += cpus.size();
  std::vector<std::size_t> result;
  std::size_t node = 0, until = nodes[0].size();  // CPUs of this node and of those before
  for (std::size_t worker = 0; worker < static_cast<std::size_t>(workers); ++worker) {
    while (worker * all >= until * static_cast<std::size_t>(workers)) until += nodes[++node].size();
    result.push_back(node);
  }
  return result;
}

void stay_on(const std::vector<int>& cpus) {
#ifdef __linux__
  cpu_set_t allowed, wanted;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_ZERO(&wanted);
  for (int cpu : cpus)
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &wanted);
  if (CPU_COUNT(&wanted) > 0) sched_setaffinity(0, sizeof wanted, &wanted);  // a wish: refusal costs speed only
#else
  static_cast<void>(cpus);
#endif
}

}  // namespace rlx
