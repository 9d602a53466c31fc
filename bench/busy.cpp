// What is left of the throughput when another process spins on one core: with two threads on two cores half of one core is lost to it, and
// what waits for the slower thread loses no more than that.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "backends/cpu/machine/cpu_features.h"
#include "cases/program.h"
#include "models/families/decoder_family.h"
#include "models/layers/encoder.h"
#include "rlx/error.h"

namespace {

using namespace rlx;

constexpr double least_ratio = 0.45;

/// A process that keeps one CPU busy while it lives.
class SpinningProcess {
 public:
  explicit SpinningProcess(int cpu) : id_(fork()) {
    if (id_ < 0) fail("a second process cannot be started: {}", std::strerror(errno));
    if (id_ == 0) spin(cpu);
  }
  ~SpinningProcess() {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  SpinningProcess(const SpinningProcess&) = delete;
  SpinningProcess& operator=(const SpinningProcess&) = delete;

 private:
  [[noreturn]] static void spin(int cpu) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    while (true) __asm__ volatile("");
  }

  pid_t id_;
};

/// One of those that this process may use.
int last_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) fail("the CPUs of this process cannot be found: {}", std::strerror(errno));
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) last = cpu;
  }
  return last;
}

/// An encoder of MiniLM's sizes.
bench::Program encoder_program(std::int64_t tokens) {
  const json::Value sizes = json::parse(R"({"vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
      "intermediate_size": 1536, "max_position_embeddings": 512})",
                                        "sizes");
  const DecoderConfig config = DecoderFamily::find("bert")->read(JsonField(sizes, "sizes"));
  Graph graph("encoder");
  graph.output("out", encode_text(Flow(graph), config, 1, 512).states.back());
  Array ids(i32, {1, tokens}), mask(i32, {1, tokens});
  for (std::int64_t i = 0; i < tokens; ++i)
    ids.mutable_values<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<int>(100 + 37 * i);
  std::ranges::fill(mask.mutable_values<std::int32_t>(), 1);
  return {.graph = graph,
          .inputs = {{"input_ids", ids}, {"attention_mask", mask}, {"token_type_ids", Array(i32, {1, tokens})}},
          .params = bench::shared_params(graph),
          .shape = {1, tokens, config.hidden_size},
          .name = fmt::format("encoder of MiniLM's sizes, {} tokens", tokens),
          .about = {{"kind", "encoder"}, {"tokens", tokens}}};
}

double runs_per_second(const bench::Case& one, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double passed = 0;
  int runs = 0;
  while (passed < seconds) {
    one.run();
    ++runs;
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return runs / passed;
}

struct Throughput {
  double quiet = 0, busy = 0;  // runs per second, the medians of all rounds
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Throughput measure(const bench::Case& one, const bench::Options& options, int cpu) {
  std::vector<double> quiet, busy;
  const double budget = options.seconds / options.rounds;
  for (int round = 0; round < options.rounds; ++round) {
    quiet.push_back(runs_per_second(one, budget));
    const SpinningProcess other(cpu);
    busy.push_back(runs_per_second(one, budget));
  }
  return {median(quiet), median(busy)};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Throughput while a second process spins on one core, over that without one");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  app.remove_option(app.get_option("--serve"));
  return bench::run_command(app, argc, argv, [&] {
    const Session session(Device::cpu(), {.threads = options.threads, .cache_folder = ""});
    const int cpu = last_cpu();
    nlohmann::json json{{"command", options.command},
                        {"cpu", cpu::describe(cpu::cpu_features(), cpu::cpu_level())},
                        {"threads", options.threads},
                        {"least_ratio", least_ratio},
                        {"cases", nlohmann::json::array()}};
    for (const bench::Program& program : {encoder_program(128), bench::product_program(512, 768, 768)}) {
      const bench::Case one = bench::program_case(session, program);
      one.run();
      const Throughput runs = measure(one, options, cpu);
      const double ratio = runs.busy / runs.quiet;
      fmt::print("{:<44} quiet {:>8.1f} runs/s  busy {:>8.1f} runs/s  {:>4.0f}%{}\n", one.name, runs.quiet, runs.busy, 100 * ratio,
                 ratio < least_ratio ? fmt::format("  less than {:.0f}%", 100 * least_ratio) : "");
      json["cases"].push_back({{"name", one.name}, {"quiet_per_s", runs.quiet}, {"busy_per_s", runs.busy}, {"ratio", ratio}});
    }
    bench::write_json(options, json);
  });
}
