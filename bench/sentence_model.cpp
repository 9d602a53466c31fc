// A sentence model through our compiler: compile time cold and from disk, time to the first result and per run, and where it goes.
// bench/peers.py runs it beside others: with --serve it says in one line of JSON that it is ready, and answers "run COUNT" with seconds and
// "result FILE" by saving the embeddings as an .npy file.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cases/cases.h"
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

/// One batch.
Inputs make_inputs(const SentenceEncoder& encoder, const Rows& rows) {
  std::vector<TokenRow> texts;
  for (const auto& row : rows) texts.push_back({.ids = row});
  return encoder.inputs(texts);
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

/// An open model with what it took to get there.
struct Model {
  Session session;
  SentenceEncoder encoder;
  double open_seconds;
  CompileCounters compiled;  // until then
};

Model open_model(const Options& options) {
  const auto begin = bench::Clock::now();
  const Session session(
      Device::cpu(),
      {.threads = options.threads, .claims = !options.no_claims, .precision = options.precision, .cache_folder = options.cache});
  const auto encoder = SentenceEncoder::open(options.folder, session, {.batch_size = options.batch_size});
  return {session, encoder, bench::seconds_since(begin), session.counters()};
}

std::int64_t compiled_since_open(const Model& model) { return model.session.counters().kernels_compiled - model.compiled.kernels_compiled; }

/// Says that the model is ready, having run it with other lengths, and answers.
void serve(const Model& model, const bench::Work& work, double first_result_seconds, std::int64_t batch_size) {
  for (std::vector<std::int64_t> other : {std::vector<std::int64_t>{77}, {5, 33, 9}}) {
    other.resize(std::min(other.size(), static_cast<std::size_t>(batch_size)));
    model.encoder.executable().run(make_inputs(model.encoder, rows_of(other)));
  }
  const nlohmann::json ready{{"version", "this build"},
                             {"open_s", model.open_seconds},
                             {"first_result_s", first_result_seconds},
                             {"compiled", model.compiled.kernels_compiled},
                             {"from_disk", model.compiled.kernels_from_disk},
                             {"compiled_for_new_lengths", compiled_since_open(model)}};
  fmt::print("{}\n", ready.dump());
  std::fflush(stdout);
  bench::serve(work);
}

void print_times(const Model& model, double first_result_seconds, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  fmt::print("open {:.1f} ms: {} kernels compiled, {} from disk, {} shared; first result after {:.1f} ms\n", model.open_seconds * 1e3,
             model.compiled.kernels_compiled, model.compiled.kernels_from_disk, model.compiled.kernels_shared, first_result_seconds * 1e3);
  fmt::print("run: min {:.3f} ms, median {:.3f} ms; compiled while running: {}\n", times.front() * 1e3, times[times.size() / 2] * 1e3,
             compiled_since_open(model));
}

void run(const Options& options) {
  const Rows rows = options.ids.empty() ? rows_of(options.lengths) : nlohmann::json::parse(std::ifstream(options.ids)).get<Rows>();
  const std::vector<std::string> texts = options.texts.empty() ? std::vector<std::string>() : read_lines(options.texts);
  const auto begin = bench::Clock::now();
  const Model model = open_model(options);
  const Inputs inputs = make_inputs(model.encoder, rows);
  const bench::Work work = [&] {  // gives the embeddings, (rows, width)
    if (!texts.empty()) return embedding_matrix(model.encoder.encode(texts), model.encoder.width());
    return model.encoder.executable().run(inputs).at("embedding");
  };
  work();
  const double first_result_seconds = bench::seconds_since(begin);
  bench::measure(work, 2);
  if (options.serve) return serve(model, work, first_result_seconds, options.batch_size);
  print_times(model, first_result_seconds, bench::measure(work, options.repeats));
  if (options.profile) bench::print_profile(model.encoder.executable(), inputs);
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
  app.add_option_function<std::string>(
         "--precision", [&](const std::string& word) { options.precision = *precision_named(word); }, "of matrix products")
      ->check(CLI::IsMember(bench::precision_words()));
  app.add_flag("--profile", options.profile, "print the time of every kind of launch");
  app.add_flag("--no-claims", options.no_claims, "generated kernels only");
  app.add_flag("--serve", options.serve, "be one side of bench/peers.py");
  return bench::run_command(app, argc, argv, [&] { run(options); });
}
