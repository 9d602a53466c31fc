#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rlx/io.h"
#include "rlx/session.h"

// What the benchmarks of whole models share: timing, where the time goes, and the answers to the script that runs them beside others.

namespace rlx::bench {

using Clock = std::chrono::steady_clock;
using Inputs = std::map<std::string, Feed>;
/// What is timed; it gives the result that sides are compared by.
using Work = std::function<Array()>;

inline double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Seconds of each run, in order.
inline std::vector<double> measure(const Work& work, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    work();
    times.push_back(seconds_since(begin));
  }
  return times;
}

/// Launches of the same name and types are one line, the longest first; each is timed 10 times, the minimum counts.
inline void print_profile(const Executable& executable, const Inputs& inputs) {
  struct Row {
    double seconds = 0, flops = 0;
    int count = 0;
  };
  std::map<std::string, Row> by_name;
  double total = 0;
  for (const LaunchReport& report : executable.profile(inputs, 10)) {
    Row& row = by_name[report.kind + " " + report.name + " " + report.types];
    row.seconds += report.seconds;
    row.flops += report.flops;
    ++row.count;
    total += report.seconds;
  }
  std::vector<std::pair<std::string, Row>> rows(by_name.begin(), by_name.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  for (const auto& [name, row] : rows)
    fmt::print("{:9.1f} us {:5.1f}%  {:4} x {:60} {:8.1f} GFLOP/s\n", row.seconds * 1e6, 100 * row.seconds / total, row.count, name,
               row.flops / row.seconds / 1e9);
}

/// Answers "run COUNT" with the seconds of each run and "result FILE" by saving the result as an .npy file, until the input ends.
inline void serve(const Work& work) {
  std::string command, argument;
  while (std::cin >> command >> argument) {
    if (command == "run") {
      work();  // not timed: the caches hold what others left there
      for (double t : measure(work, std::stoi(argument))) fmt::print("{:.9f} ", t);
      fmt::print("\n");
    } else {
      save_npy(argument, work());
      fmt::print("saved\n");
    }
    std::fflush(stdout);
  }
}

}  // namespace rlx::bench
