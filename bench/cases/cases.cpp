#include "cases/cases.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "backends/cpu/machine/cpu_features.h"
#include "backends/cpu/peaks/peaks.h"
#include "base/cpu_count.h"
#include "base/fastest_seconds.h"
#include "rlx/error.h"
#include "rlx/io.h"
#include "rlx/precision.h"

namespace rlx::bench {
namespace {

/// Bytes/s that were measured last, as other tenants of a machine double and halve them within seconds.
struct MemoryRates {
  double read = 0, copy = 0;
};

/// The rates of the machine, of arithmetic the best of all rounds.
struct Limits {
  std::map<std::string, double> operations;  // by arithmetic
  MemoryRates memory;

  void measure_arithmetic(const std::vector<Case>& cases, ThreadPool& pool, double budget) {
    std::set<std::string> needed;
    for (const Case& one : cases) {
      if (one.flops > 0) needed.insert(one.arithmetic);
    }
    for (const std::string& name : needed) operations[name] = std::max(operations[name], cpu::compute_peak(pool, name, budget));
  }

  /// The rate that binds a case.
  void measure_memory(const Case& one, ThreadPool& pool, double budget) {
    const std::size_t bytes = cpu::bytes_beyond_caches(pool.size());
    if (one.bytes_written > 0) memory.copy = cpu::copy_bandwidth(pool, bytes, budget);
    else if (one.bytes_read > 0) memory.read = cpu::read_bandwidth(pool, bytes, budget);
  }
};

/// The limit that binds a case, and the least time that it allows.
struct Bound {
  std::string name;
  double seconds = 0;
  double bytes_per_s = 0;  // where memory binds
};

Bound bound_of(const Case& one, const std::map<std::string, double>& operations, const MemoryRates& rates) {
  Bound bound{one.arithmetic, 0};
  if (const auto peak = operations.find(one.arithmetic); peak != operations.end()) bound.seconds = one.flops / peak->second;
  const bool copies = one.bytes_written > 0;
  const double rate = copies ? rates.copy : rates.read;
  const double memory = rate > 0 ? (one.bytes_read + one.bytes_written) / rate : 0;
  if (memory > bound.seconds) bound = {copies ? "copy" : "read", memory, rate};
  return bound;
}

void serve(const std::vector<Case>& cases) {
  nlohmann::json abouts = nlohmann::json::array();
  for (const Case& one : cases) abouts.push_back(one.about);
  fmt::print("{}\n", nlohmann::json{{"cases", abouts}}.dump());
  std::fflush(stdout);
  std::string command, argument;
  std::size_t index = 0;
  while (std::cin >> command >> index >> argument) {
    const Case& one = cases.at(index);
    if (command == "time") {
      const Times times = times_of(one, std::stod(argument));
      fmt::print("{:.9e} {:.9e}\n", times.fastest, times.median);
    } else {
      one.run();
      save_npy(argument, one.result());
      fmt::print("saved\n");
    }
    std::fflush(stdout);
  }
}

/// The fastest run of a case, memory as it was just before, and the medians of all rounds.
struct Timing {
  double seconds = std::numeric_limits<double>::infinity();
  MemoryRates memory;
  std::vector<double> medians;
};

void print_case(const Case& one, const Timing& timing, const Bound& bound) {
  const auto& [seconds, memory, medians] = timing;
  fmt::print("{:<44} {:>11.1f} us ({:>11.1f}) {:>9.1f} GFLOP/s {:>7.1f} GB/s {:>6.1f}% of {}", one.name, seconds * 1e6,
             median(medians) * 1e6, one.flops / seconds / 1e9, (one.bytes_read + one.bytes_written) / seconds / 1e9,
             100 * bound.seconds / seconds, bound.name);
  if (bound.bytes_per_s > 0) fmt::print(", then {:.1f} GB/s", bound.bytes_per_s / 1e9);
  fmt::print("\n");
}

}  // namespace

std::string command_line(int argc, const char* const* argv) { return fmt::format("{}", fmt::join(argv, argv + argc, " ")); }

int run_command(CLI::App& app, int argc, const char* const* argv, const std::function<void()>& body) {
  try {
    app.parse(argc, argv);
    body();
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

void write_json(const Options& options, const nlohmann::json& json) {
  if (!options.json_path.empty() && !(std::ofstream(options.json_path) << json.dump(1) << '\n')) {
    fail("{}: cannot be written", options.json_path);
  }
}

std::vector<std::string> precision_words() {
  const auto words = enum_words(Precision());
  return {words.begin(), words.end()};
}

Times times_of(const Case& one, double budget) {
  constexpr double long_enough = 1e-3;
  const double once = fastest_seconds(0, one.run);
  const int calls = static_cast<int>(std::clamp(long_enough / once, 1.0, 1e5));
  const std::vector<double> seconds = seconds_of_calls(budget, [&] {
    for (int i = 0; i < calls; ++i) one.run();
  });
  const double least = *std::ranges::min_element(seconds) / calls;
  return {calls == 1 ? std::min(once, least) : least, median(seconds) / calls};
}

void add_options(CLI::App& app, Options& options, int argc, const char* const* argv) {
  options.command = command_line(argc, argv);
  options.threads = granted_cpus();
  app.add_option("--threads", options.threads, "threads")->check(CLI::Range(1, ThreadPool::max_threads));
  app.add_option("--seconds", options.seconds, "time for each case")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "how often to go through all cases")->check(CLI::Range(1, 1000));
  app.add_flag("--serve", options.serve, "be one side of bench/op_peers.py");
  app.add_option("--json", options.json_path, "also write the figures to this file");
}

void run_cases(const std::vector<Case>& cases, const Options& options, ThreadPool& pool) {
  if (options.serve) return serve(cases);
  const double budget = options.seconds / options.rounds;
  Limits limits;
  std::vector<Timing> timings(cases.size());
  for (int round = 0; round < options.rounds; ++round) {  // a disturbance of some seconds then hits no figure in all its rounds
    limits.measure_arithmetic(cases, pool, budget);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      limits.measure_memory(cases[i], pool, budget);
      const Times times = times_of(cases[i], budget);
      timings[i].medians.push_back(times.median);
      if (times.fastest < timings[i].seconds) timings[i].seconds = times.fastest, timings[i].memory = limits.memory;
    }
  }
  const std::string description = cpu::describe(cpu::cpu_features(), cpu::cpu_level());
  nlohmann::json json{{"command", options.command},
                      {"cpu", description},
                      {"threads", pool.size()},
                      {"operations_per_s", limits.operations},
                      {"cases", nullptr}};
  fmt::print("{}, {} threads; the fastest run, and the median in brackets\n", description, pool.size());
  for (const auto& [name, rate] : limits.operations) fmt::print("limit {}: {:.1f} G operations/s\n", name, rate / 1e9);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [seconds, memory, medians] = timings[i];
    const Bound bound = bound_of(cases[i], limits.operations, memory);
    print_case(cases[i], timings[i], bound);
    json["cases"].push_back({{"name", cases[i].name},
                             {"about", cases[i].about},
                             {"seconds", seconds},
                             {"median_s", median(medians)},
                             {"flops", cases[i].flops},
                             {"bytes", cases[i].bytes_read + cases[i].bytes_written},
                             {"bound", bound.name},
                             {"bytes_per_s", bound.bytes_per_s},
                             {"share", bound.seconds / seconds}});
  }
  write_json(options, json);
}

void fill(std::span<float> values, std::uint32_t seed) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(i + 1) * 2654435761u * seed;
    values[i] = static_cast<float>(bits >> 8) / static_cast<float>(1 << 24) - 0.5f;  // 24 bits: what f32 holds exactly
  }
}

}  // namespace rlx::bench
