// Attention of 12 heads of 64, compiled by a session, over lengths of 128 to 4096, causal and not, with its gradient if asked, as a share
// of the multiply-add peak.
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
  CLI::App app("Attention against the multiply-add peak");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  std::vector<std::int64_t> lengths{128, 256, 512, 1024, 2048, 4096};
  app.add_option("--lengths", lengths, "queries and keys")->delimiter(',')->check(CLI::Range(1, 1 << 16));
  const std::map<std::string, DType> types{{"f32", f32}, {"bf16", bf16}};
  DType type = f32;
  app.add_option("--type", type, "of queries, keys and values")->transform(CLI::CheckedTransformer(types));
  bool gradient = false;
  app.add_flag("--gradient", gradient, "the result, and the gradients of queries, keys and values");
  return bench::run_command(app, argc, argv, [&] {
    const Session session(Device::cpu(), {.threads = options.threads, .cache_folder = ""});
    std::vector<bench::Case> cases;
    for (std::int64_t length : lengths) {
      for (bool causal : {false, true})
        cases.push_back(bench::program_case(session, bench::attention_program(12, 64, length, causal, type, gradient)));
    }
    ThreadPool pool(options.threads);
    bench::run_cases(cases, options, pool);
  });
}
