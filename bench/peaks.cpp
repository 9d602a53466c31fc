// What the machine can do at best, from 1 thread to all granted CPUs: multiply-adds of each kind that it has, reading and copying in each
// cache and in memory, starting a parallel loop. Every other benchmark prints its result as a share of these.
#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backends/cpu/machine/cpu_features.h"
#include "backends/cpu/peaks/peaks.h"
#include "base/cpu_count.h"
#include "base/thread_pool.h"
#include "cases/cases.h"
#include "rlx/error.h"

namespace {

using namespace rlx;

nlohmann::json compute(ThreadPool& pool, double budget) {
  nlohmann::json rates;
  for (const cpu::ComputeLoop& loop : cpu::compute_loops(cpu::cpu_level())) {
    const double rate = rates[std::string(loop.arithmetic)] = cpu::compute_peak(pool, loop, budget);
    fmt::print("  {:<22} {:10.1f} G operations/s\n", loop.arithmetic, rate / 1e9);
  }
  return rates;
}

/// Half of a cache: the rest is for what else a core needs at the time.
nlohmann::json memory(ThreadPool& pool, double budget) {
  const cpu::CpuFeatures& features = cpu::cpu_features();
  const std::pair<const char*, std::size_t> places[]{{"L1", static_cast<std::size_t>(features.l1_bytes / 2)},
                                                     {"L2", static_cast<std::size_t>(features.l2_bytes / 2)},
                                                     {"DRAM", cpu::bytes_beyond_caches(pool.size())}};
  nlohmann::json rates;
  for (const auto& [name, bytes] : places) {
    const double read = rates["read"][name] = cpu::read_bandwidth(pool, bytes, budget);
    const double copy = rates["copy"][name] = cpu::copy_bandwidth(pool, bytes, budget);
    fmt::print("  {:<22} {:10.1f} GB/s read {:10.1f} GB/s copied (read and written)\n", name, read / 1e9, copy / 1e9);
  }
  return rates;
}

/// After no pause workers spin; 10 us is a launch on one thread between two parallel ones; after 2 ms they sleep.
nlohmann::json regions(ThreadPool& pool, double budget) {
  constexpr std::pair<const char*, double> pauses[]{{"at once", 0.0}, {"after 10 us", 10e-6}, {"after 2 ms", 2e-3}};
  nlohmann::json times;
  for (const auto& [name, pause] : pauses) {
    const double seconds = times[name] = cpu::region_seconds(pool, pause, budget);
    fmt::print("  parallel loop {:<12} {:8.2f} us\n", name, seconds * 1e6);
  }
  return times;
}

void report(const std::string& command, int most_threads, double budget, const std::string& json_path) {
  const std::string description = cpu::describe(cpu::cpu_features(), cpu::cpu_level());
  nlohmann::json json{{"command", command}, {"cpu", description}, {"granted_cpus", granted_cpus()}};
  fmt::print("{}, {} CPUs granted\n", description, granted_cpus());
  for (int threads = 1; threads <= most_threads; ++threads) {
    ThreadPool pool(threads);
    fmt::print("{} thread{}\n", threads, threads == 1 ? "" : "s");
    json["peaks"].push_back({{"threads", threads},
                             {"operations_per_s", compute(pool, budget)},
                             {"bytes_per_s", memory(pool, budget)},
                             {"parallel_loop_s", regions(pool, budget)}});
  }
  if (!json_path.empty() && !(std::ofstream(json_path) << json.dump(2) << '\n')) fail("{}: cannot be written", json_path);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Peak rates of this machine: multiply-adds, memory, the start of a parallel loop");
  double budget = 0.5;
  int threads = granted_cpus();
  std::string json_path;
  app.add_option("--threads", threads, "measure with 1 to this many")->check(CLI::Range(1, ThreadPool::max_threads));
  app.add_option("--seconds", budget, "time for each figure")->check(CLI::PositiveNumber);
  app.add_option("--json", json_path, "also write the figures to this file");
  return bench::run_command(app, argc, argv, [&] { report(bench::command_line(argc, argv), threads, budget, json_path); });
}
