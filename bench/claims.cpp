// What the hand-written kernels are worth: products, attention and convolutions with claims and without, in turn, as sessions compile them.
// A lone convolution keeps its channels outside; a block of them has them as the last axis, where Winograd's products compute 3 x 3.
// A claim is a tenth faster than the generated kernels that it replaces, or goes: the command fails and names those that are not.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "backends/cpu/machine/cpu_features.h"
#include "cases/program.h"
#include "rlx/error.h"

namespace {

using namespace rlx;

constexpr double least_gain = 1.1;

struct Comparison {
  std::string name;
  bench::Case claimed, generated;
  double claimed_s = std::numeric_limits<double>::infinity(), generated_s = claimed_s;

  double times_faster() const { return generated_s / claimed_s; }
  bool is_worth_it() const { return times_faster() >= least_gain; }

  void time(double budget) {
    claimed_s = std::min(claimed_s, bench::times_of(claimed, budget).fastest);
    generated_s = std::min(generated_s, bench::times_of(generated, budget).fastest);
  }
};

/// Of f32 sessions alone: products with blocks and of f64, and what is kept in f16, are the same in every precision, and narrow
/// convolutions keep the order of their axes.
void add_those_of_f32(std::vector<bench::Program>& all) {
  for (std::int64_t rows : {1, 256}) all.push_back(bench::product_program(rows, 512, 512, f64));
  all.push_back(bench::decode_program(32, 4, 64, 4096, f16));
  all.push_back(bench::prompt_program(32, 4, 64, 128, 1024));
  all.push_back(bench::bottleneck_program(64, 56));
  all.push_back(bench::bottleneck_program(256, 14));
  for (const char* type : {"Q4_0", "Q4_K", "Q6_K", "Q8_0", "Q8_K", "IQ3_S"})
    all.push_back(bench::block_product_program(type, 1, 2048, 2048));
  for (const char* type : {"Q4_K", "Q8_K"}) all.push_back(bench::block_product_program(type, 128, 2048, 2048));
  for (const char* type : {"Q4_K", "F16"}) all.push_back(bench::grouped_product_program(type, 64, 1024, 1024, 8));
}

std::vector<bench::Program> programs(Precision precision) {
  std::vector<bench::Program> all{bench::product_program(1, 768, 3072), bench::product_program(128, 384, 384),
                                  bench::product_program(512, 768, 768), bench::product_program(256, 4, 4096)};
  for (const bench::ConvLayer& layer : std::vector<bench::ConvLayer>{{64, 64, 56, 3, 1}, {128, 512, 28, 1, 1}, {256, 256, 14, 3, 1}}) {
    all.push_back(bench::conv_program(layer, 1));
  }
  if (precision == Precision::f32) add_those_of_f32(all);
  if (precision == Precision::int8) return all;  // which attention does not have
  const DType type = precision == Precision::bf16 ? bf16 : f32;
  all.push_back(bench::decode_program(32, 4, 64, 4096, type));
  for (std::int64_t length : {128, 512}) {
    for (bool causal : {false, true}) {
      all.push_back(bench::attention_program(12, 64, length, causal, type));
    }
  }
  return all;
}

std::vector<Comparison> comparisons(int threads, const std::vector<std::string>& precisions) {
  std::vector<Comparison> all;
  for (const std::string& word : precisions) {
    const Precision precision = *precision_named(word);
    const auto session = [&](bool claims) {
      return Session(Device::cpu(), {.threads = threads, .claims = claims, .precision = precision, .cache_folder = ""});
    };
    const Session claiming = session(true), generating = session(false);
    for (const bench::Program& program : programs(precision)) {
      all.push_back(
          {fmt::format("{}, {}", word, program.name), bench::program_case(claiming, program), bench::program_case(generating, program)});
    }
  }
  return all;
}

/// The fastest run of each side over all rounds. What falls short is timed for more of them before it is judged: whatever disturbs a run
/// makes it slower, so that the fastest ones come nearer to what the code can do.
void time_in_turn(std::vector<Comparison>& all, const bench::Options& options) {
  constexpr int most_attempts = 4;
  for (int attempt = 0; attempt < most_attempts; ++attempt)
    for (int round = 0; round < options.rounds; ++round)
      for (Comparison& one : all)
        if (attempt == 0 || !one.is_worth_it()) one.time(options.seconds / options.rounds);
}

void report(const std::vector<Comparison>& all, const bench::Options& options) {
  nlohmann::json json{{"command", options.command},
                      {"cpu", cpu::describe(cpu::cpu_features(), cpu::cpu_level())},
                      {"threads", options.threads},
                      {"cases", nlohmann::json::array()}};
  for (const Comparison& one : all) {
    fmt::print("{:<52} claimed {:>10.1f} us  generated {:>10.1f} us  {:>6.2f}x\n", one.name, one.claimed_s * 1e6, one.generated_s * 1e6,
               one.times_faster());
    json["cases"].push_back(
        {{"name", one.name}, {"claimed_s", one.claimed_s}, {"generated_s", one.generated_s}, {"times_faster", one.times_faster()}});
  }
  bench::write_json(options, json);
}

/// Throws Error that names the claims which are not worth their code.
void check(const std::vector<Comparison>& all) {
  std::vector<std::string> slow;
  for (const Comparison& one : all)
    if (!one.is_worth_it()) slow.push_back(fmt::format("'{}' ({:.2f} times)", one.name, one.times_faster()));
  if (!slow.empty()) fail("claims: less than {} times as fast as the generated kernels: {}", least_gain, fmt::join(slow, ", "));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Hand-written kernels against the generated ones that they replace");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  app.remove_option(app.get_option("--serve"));  // no other side: both are ours
  std::vector<std::string> precisions = bench::precision_words();
  app.add_option("--precision", precisions, "of the sessions")->delimiter(',')->check(CLI::IsMember(bench::precision_words()));
  return bench::run_command(app, argc, argv, [&] {
    std::vector<Comparison> all = comparisons(options.threads, precisions);
    time_in_turn(all, options);
    report(all, options);
    check(all);
  });
}
