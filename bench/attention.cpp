// Attention of 12 heads of 64 in f32, compiled by a session, over lengths of 128 to 4096, causal and not, as a share of the multiply-add
// peak. Multiply-adds of the two products count, for the pairs of query and key that are seen; exponentials do not.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "base/thread_pool.h"
#include "cases/cases.h"
#include "cases/program.h"
#include "rlx/ops.h"

namespace {

using namespace rlx;

bench::Case make_case(std::int64_t heads, std::int64_t depth, std::int64_t length, bool causal, const Session& session) {
  const std::vector<std::int64_t> shape{1, heads, length, depth};
  Graph graph("attention");
  auto input = [&](const char* name) { return graph.input(name, {1, heads, length, depth}, f32); };
  Value q = input("q"), k = input("k"), v = input("v");
  AttentionOptions options;
  options.causal = causal;
  graph.output("out", attention(q, k, v, options));
  bench::Case one = bench::program_case(
      session, graph, {{"q", bench::filled(shape, 1)}, {"k", bench::filled(shape, 3)}, {"v", bench::filled(shape, 5)}}, shape);
  one.name = fmt::format("{} heads x {}, length {}{}", heads, depth, length, causal ? ", causal" : "");
  one.about = {{"kind", "attention"}, {"heads", heads}, {"depth", depth}, {"length", length}, {"causal", causal}};
  const double pairs = causal ? static_cast<double>(length * (length + 1) / 2) : static_cast<double>(length * length);
  one.flops = 4.0 * static_cast<double>(heads * depth) * pairs;
  return one;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Attention against the multiply-add peak");
  bench::Options options;
  bench::add_options(app, options);
  std::vector<std::int64_t> lengths{128, 256, 512, 1024, 2048, 4096};
  app.add_option("--lengths", lengths, "queries and keys")->delimiter(',')->check(CLI::Range(1, 1 << 16));
  CLI11_PARSE(app, argc, argv);
  try {
    const Session session(Device::cpu(), {.threads = options.threads, .cache_folder = ""});
    std::vector<bench::Case> cases;
    for (std::int64_t length : lengths) {
      for (bool causal : {false, true}) cases.push_back(make_case(12, 64, length, causal, session));
    }
    ThreadPool pool(options.threads);
    bench::run_cases(cases, options, pool);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
