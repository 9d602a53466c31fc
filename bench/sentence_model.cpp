// MiniLM through our compiler: compile time cold and from disk, time per batch, and where it goes. bench/peers.py runs it beside ONNX
// Runtime: with --serve it reads "run COUNT" lines and answers with seconds per run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <random>

#include <CLI/CLI.hpp>

#include "models/model_folder.h"
#include "rlx/sentence_encoder.h"

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Ids of a batch whose rows have the given lengths, padded to the longest, as every side of the comparison makes them.
std::map<std::string, rlx::Feed> make_inputs(const std::vector<std::int64_t>& lengths) {
  const auto batch = static_cast<std::int64_t>(lengths.size()), longest = *std::max_element(lengths.begin(), lengths.end());
  rlx::Array ids(rlx::i32, {batch, longest}), mask(rlx::i32, {batch, longest}), types(rlx::i32, {batch, longest});
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t s = 0; s < lengths[static_cast<std::size_t>(b)]; ++s) {
      ids.set_int(b * longest + s, 1000 + (b * 7919 + s * 104729) % 20000);
      mask.set_int(b * longest + s, 1);
    }
  return {{"input_ids", ids}, {"attention_mask", mask}, {"token_type_ids", types}};
}

std::vector<double> measure(const rlx::Executable& executable, const std::map<std::string, rlx::Feed>& inputs, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    executable.run(inputs);
    times.push_back(seconds_since(begin));
  }
  std::sort(times.begin(), times.end());
  return times;
}

void print_profile(const rlx::Executable& executable, const std::map<std::string, rlx::Feed>& inputs) {
  std::map<std::string, std::pair<double, std::pair<double, int>>> by_name;
  double total = 0;
  for (const rlx::LaunchReport& report : executable.profile(inputs, 10)) {
    auto& row = by_name[report.kind + " " + report.name + " " + report.types];
    row.first += report.seconds;
    row.second.first += report.flops;
    ++row.second.second;
    total += report.seconds;
  }
  std::vector<std::pair<double, std::string>> rows;
  for (const auto& [name, row] : by_name)
    rows.emplace_back(row.first, fmt::format("{:4} x {:60} {:8.1f} GFLOP/s", row.second.second, name, row.second.first / row.first / 1e9));
  std::sort(rows.rbegin(), rows.rend());
  for (const auto& [seconds, text] : rows) fmt::print("{:9.1f} us {:5.1f}%  {}\n", seconds * 1e6, 100 * seconds / total, text);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times a sentence model");
  std::string folder, cache;
  std::vector<std::int64_t> lengths{128};
  int threads = 2, repeats = 20;
  bool profile = false, serve = false, no_claims = false;
  app.add_option("--model", folder, "model folder")->required();
  app.add_option("--lengths", lengths, "tokens of each row of the batch")->delimiter(',');
  app.add_option("--threads", threads, "threads");
  app.add_option("--repeats", repeats, "timed runs");
  app.add_option("--cache", cache, "folder of compiled kernels; none when empty");
  app.add_flag("--profile", profile, "print the time of every kind of launch");
  app.add_flag("--no-claims", no_claims, "generated kernels only");
  app.add_flag("--serve", serve, "answer 'run COUNT' lines with seconds");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto opened = Clock::now();
    const rlx::Session session(rlx::Device::cpu(), {.threads = threads, .claims = !no_claims, .cache_folder = cache});
    const auto encoder = rlx::SentenceEncoder::open(folder, session, {.batch_size = 64});
    const double open_seconds = seconds_since(opened);
    const auto before = session.counters();
    const auto inputs = make_inputs(lengths);
    measure(encoder.executable(), inputs, 3);
    if (serve) {
      for (const std::vector<std::int64_t>& other : {std::vector<std::int64_t>{77}, {5, 33, 9}})
        measure(encoder.executable(), make_inputs(other), 1);
      fmt::print("ready {:.6f} {} {} {}\n", open_seconds, before.kernels_compiled, before.kernels_from_disk,
                 session.counters().kernels_compiled - before.kernels_compiled);
      std::fflush(stdout);
      std::string word;
      int count = 0;
      while (std::cin >> word >> count) {
        for (double t : measure(encoder.executable(), inputs, count)) fmt::print("{:.9f} ", t);
        fmt::print("\n");
        std::fflush(stdout);
      }
      return 0;
    }
    const auto times = measure(encoder.executable(), inputs, repeats);
    const auto after = session.counters();
    fmt::print("open {:.1f} ms: {} kernels compiled, {} from disk, {} shared\n", open_seconds * 1e3, before.kernels_compiled,
               before.kernels_from_disk, before.kernels_shared);
    fmt::print("run: min {:.3f} ms, median {:.3f} ms; compiled while running: {}\n", times.front() * 1e3, times[times.size() / 2] * 1e3,
               after.kernels_compiled - before.kernels_compiled);
    if (profile) print_profile(encoder.executable(), inputs);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
