// Single convolutions, as ResNet-50 has them, compiled by a session, as shares of the multiply-add peak.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "base/thread_pool.h"
#include "cases/program.h"

int main(int argc, char** argv) {
  using namespace rlx;
  CLI::App app("Single convolutions of ResNet-50 against the multiply-add peak");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  std::vector<std::int64_t> batches{1, 8};
  std::size_t count = bench::resnet50_layers().size();
  std::string precision = "f32";
  app.add_option("--batches", batches, "images of a run")->delimiter(',')->check(CLI::Range(1, 1024));
  app.add_option("--layers", count, "only so many layers, the first")->check(CLI::Range(std::size_t{1}, count));
  app.add_option("--precision", precision, "of the session; the printed peak says what became of it")
      ->check(CLI::IsMember(bench::precision_words()));
  return bench::run_command(app, argc, argv, [&] {
    const Session session(Device::cpu(), {.threads = options.threads, .precision = *precision_named(precision), .cache_folder = ""});
    std::vector<bench::Case> cases;
    for (std::int64_t batch : batches) {
      for (std::size_t i = 0; i < count; ++i) {
        cases.push_back(bench::program_case(session, bench::conv_program(bench::resnet50_layers()[i], batch)));
        cases.back().about["type"] = precision;
      }
    }
    ThreadPool pool(options.threads);
    bench::run_cases(cases, options, pool);
  });
}
