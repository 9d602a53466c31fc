#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "rlx/array.h"

// What benchmarks of single operations share: cases are timed in turn, round after round, and each figure is printed as a share of the
// limit that binds it, measured in the same rounds, and for memory just before.

namespace rlx::bench {

/// One piece of work that is run again and again.
struct Case {
  std::string name;
  nlohmann::json about;                      // the sizes, as the other side of a comparison reads them: see bench/op_peers.py
  double flops = 0;                          // a multiply-add counts as two
  std::string arithmetic = "f32";            // of its multiply-adds: f32, f64, bf16 or int8
  double bytes_read = 0, bytes_written = 0;  // from and to memory at the least; 0 where caches may hold them
  std::function<void()> run;
  std::function<Array()> result;  // of the last run, for a comparison
};

struct Options {
  int threads = 0;  // set by add_options to the CPUs granted
  double seconds = 0.5;
  int rounds = 5;
  bool serve = false;
  std::string json_path;
  std::string command;  // as it was called, for the JSON
};

/// The words of a command, as JSON keeps them beside the figures.
std::string command_line(int argc, const char* const* argv);

/// All that main does: reads the options, calls `body`, and says in one line what went wrong. Returns the exit status.
int run_command(CLI::App& app, int argc, const char* const* argv, const std::function<void()>& body);

/// Declares the options that all benchmarks of single operations have.
void add_options(CLI::App& app, Options& options, int argc, const char* const* argv);

/// Writes figures to the file that the options name, if any. Throws Error when it cannot be written.
void write_json(const Options& options, const nlohmann::json& json);

/// The precisions of a session, as options name them.
std::vector<std::string> precision_words();

/// Seconds of a run, of those within the budget. Short ones run back to back, as in a model, so that the clock's own cost does not count.
struct Times {
  double fastest, median;
};
Times times_of(const Case& one, double budget);

/// Measures and prints all cases, or serves them: prints one line of JSON, the list of `about`s, and then answers each line "time INDEX
/// SECONDS" with the seconds of the fastest and of the median run and "result INDEX FILE" by saving the result as an .npy file. `pool` is
/// the one that the cases run on, or one of as many threads. Throws Error when a file cannot be written.
void run_cases(const std::vector<Case>& cases, const Options& options, ThreadPool& pool);

/// Numbers in [-0.5, 0.5) that the other side of a comparison makes as well: element i is the upper 24 of the 32 bits of (i + 1) *
/// 2654435761 * seed, over 2^24, less 0.5.
void fill(std::span<float> values, std::uint32_t seed);

}  // namespace rlx::bench
