// A sentence model through our compiler: compile time cold and from disk, time per run, and where it goes. bench/peers.py runs it beside
// others: with --serve it says in one line of JSON that it is ready, and answers "run COUNT" with seconds and "result FILE" by saving the
// embeddings as an .npy file.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "rlx/io.h"
#include "rlx/sentence_encoder.h"
#include "serve.h"

namespace {

using namespace rlx;
using bench::Inputs;
using Rows = std::vector<std::vector<std::int32_t>>;  // ids of each text

Rows rows_of(const std::vector<std::int64_t>& lengths) {
  Rows rows;
  for (std::int64_t length : lengths) {
    const auto b = static_cast<std::int32_t>(rows.size());
    rows.emplace_back(static_cast<std::size_t>(length));
    for (std::int32_t s = 0; s < length; ++s) rows.back()[static_cast<std::size_t>(s)] = 1000 + (b * 7919 + s * 15013) % 20000;
  }
  return rows;
}

/// One batch, padded to the longest row.
Inputs make_inputs(const Rows& rows) {
  std::size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(longest)};
  Array ids(i32, shape), mask(i32, shape), types(i32, shape);
  for (std::size_t b = 0; b < rows.size(); ++b) {
    const auto begin = static_cast<std::ptrdiff_t>(b * longest);
    std::copy(rows[b].begin(), rows[b].end(), ids.mutable_values<std::int32_t>().begin() + begin);
    std::fill_n(mask.mutable_values<std::int32_t>().begin() + begin, rows[b].size(), 1);
  }
  return {{"input_ids", ids}, {"attention_mask", mask}, {"token_type_ids", types}};
}

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.empty()) fail("{}: cannot be read, or is empty", path);
  return lines;
}

struct Options {
  std::string folder, cache, ids, texts;
  std::vector<std::int64_t> lengths{128};
  std::int64_t batch_size = 64;
  int threads = 2, repeats = 20;
  bool profile = false, serve = false, no_claims = false;
  Precision precision = Precision::f32;
};

int run(const Options& options) {
  const auto opened = bench::Clock::now();
  const Session session(
      Device::cpu(),
      {.threads = options.threads, .claims = !options.no_claims, .precision = options.precision, .cache_folder = options.cache});
  const auto encoder = SentenceEncoder::open(options.folder, session, {.batch_size = options.batch_size});
  const double open_seconds = bench::seconds_since(opened);
  const CompileCounters before = session.counters();

  const Rows rows = options.ids.empty() ? rows_of(options.lengths) : nlohmann::json::parse(std::ifstream(options.ids)).get<Rows>();
  const Inputs inputs = make_inputs(rows);
  bench::Work work = [&] {  // gives the embeddings, (rows, width)
    return encoder.executable().run(inputs).at("embedding");
  };
  if (!options.texts.empty()) {
    work = [&, texts = read_lines(options.texts)] { return embedding_matrix(encoder.encode(texts), encoder.width()); };
  }
  bench::measure(work, 3);
  if (options.serve) {
    for (const std::vector<std::int64_t>& other : {std::vector<std::int64_t>{77}, {5, 33, 9}})
      encoder.executable().run(make_inputs(rows_of(other)));
    const nlohmann::json ready{{"version", "this build"},
                               {"open_s", open_seconds},
                               {"compiled", before.kernels_compiled},
                               {"from_disk", before.kernels_from_disk},
                               {"compiled_for_new_lengths", session.counters().kernels_compiled - before.kernels_compiled}};
    fmt::print("{}\n", ready.dump());
    std::fflush(stdout);
    bench::serve(work);
    return 0;
  }
  std::vector<double> times = bench::measure(work, options.repeats);
  std::sort(times.begin(), times.end());
  fmt::print("open {:.1f} ms: {} kernels compiled, {} from disk, {} shared\n", open_seconds * 1e3, before.kernels_compiled,
             before.kernels_from_disk, before.kernels_shared);
  fmt::print("run: min {:.3f} ms, median {:.3f} ms; compiled while running: {}\n", times.front() * 1e3, times[times.size() / 2] * 1e3,
             session.counters().kernels_compiled - before.kernels_compiled);
  if (options.profile) bench::print_profile(encoder.executable(), inputs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times a sentence model");
  Options options;
  app.add_option("--model", options.folder, "model folder")->required();
  app.add_option("--lengths", options.lengths, "tokens of each row of the one batch")->delimiter(',')->check(CLI::Range(1, 4096));
  app.add_option("--ids", options.ids, "the rows themselves in place of --lengths: a JSON file, a list of lists of ids");
  app.add_option("--texts", options.texts, "a file of texts, one a line, that are tokenized and batched by length in every run");
  app.add_option("--batch-size", options.batch_size, "texts that run together")->check(CLI::Range(1, 4096));
  app.add_option("--threads", options.threads, "threads");
  app.add_option("--repeats", options.repeats, "timed runs")->check(CLI::PositiveNumber);
  app.add_option("--cache", options.cache, "folder of compiled kernels; none when empty");
  const std::map<std::string, Precision> precisions{{"f32", Precision::f32}, {"bf16", Precision::bf16}, {"int8", Precision::int8}};
  app.add_option("--precision", options.precision, "of matrix products")->transform(CLI::CheckedTransformer(precisions));
  app.add_flag("--profile", options.profile, "print the time of every kind of launch");
  app.add_flag("--no-claims", options.no_claims, "generated kernels only");
  app.add_flag("--serve", options.serve, "be one side of bench/peers.py");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
