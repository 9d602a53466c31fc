#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "command.h"
#include "compile_choices.h"
#include "formats/json.h"
#include "models/cached_decoder.h"
#include "models/decoder_files.h"
#include "rlx/session.h"
#include "stopwatch.h"

namespace rlx::command {
namespace {

struct BenchOptions {
  std::string model;
  std::int64_t prompt = 512, tokens = 128, depth = 0;
  int repeats = 5;
  bool json = false;
  CompileChoices compile;
};

/// One kind of work, timed several times: tokens a second.
struct Rate {
  std::string name;
  std::int64_t tokens = 0;
  std::vector<double> samples = {};

  double mean() const {
    double sum = 0;
    for (double each : samples) sum += each;
    return sum / static_cast<double>(samples.size());
  }
  double deviation() const {
    double sum = 0;
    for (double each : samples) sum += (each - mean()) * (each - mean());
    return samples.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(samples.size() - 1));
  }
};

/// Any tokens will do: the work does not depend on which they are.
std::vector<std::int32_t> some_tokens(std::int64_t count, std::int64_t vocab_size) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>((i * 7919 + 11) % vocab_size));
  return ids;
}

/// Runs `work` on a cache of `depth` tokens, once unmeasured, then as often as asked for.
Rate measured(const BenchOptions& options, CachedDecoder& decoder, std::string name, std::int64_t tokens,
              const std::function<void()>& work) {
  Rate rate{.name = options.depth > 0 ? fmt::format("{} @ {}", name, options.depth) : std::move(name), .tokens = tokens};
  decoder.rewind(0);
  if (options.depth > 0) decoder.append(some_tokens(options.depth, decoder.config().vocab_size));
  for (int i = 0; i <= options.repeats; ++i) {
    decoder.rewind(options.depth);
    const Stopwatch time;
    work();
    if (i > 0) rate.samples.push_back(static_cast<double>(tokens) / time.seconds());
  }
  return rate;
}

std::vector<Rate> rates(const BenchOptions& options, CachedDecoder& decoder) {
  const std::int64_t vocab = decoder.config().vocab_size;
  std::vector<Rate> results;
  if (options.prompt > 0) {
    const auto prompt = some_tokens(options.prompt, vocab);
    results.push_back(measured(options, decoder, fmt::format("pp{}", options.prompt), options.prompt, [&] { decoder.append(prompt); }));
  }
  if (options.tokens > 0) {
    const auto tokens = some_tokens(options.tokens, vocab);
    results.push_back(measured(options, decoder, fmt::format("tg{}", options.tokens), options.tokens, [&] {
      for (const std::int32_t& id : tokens) decoder.append(std::span(&id, 1));
    }));
  }
  return results;
}

void print_rates(const BenchOptions& options, const Session& session, std::span<const Rate> results) {
  for (const Rate& rate : results) {
    if (options.json) {
      const json::Value line{{"model", options.model},        {"test", rate.name},
                             {"threads", session.threads()},  {"tokens_per_second", rate.mean()},
                             {"deviation", rate.deviation()}, {"samples", rate.samples}};
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("{:<16} {:>10.2f} ± {:.2f} tok/s\n", rate.name, rate.mean(), rate.deviation());
    }
  }
}

void bench(const BenchOptions& options) {
  const Session session = open_session(options.compile);
  const Stopwatch load;
  const std::int64_t context = options.depth + std::max({options.prompt, options.tokens, std::int64_t{1}});
  CachedDecoder decoder(session, DecoderFiles::open(options.model), {.context = context});
  fmt::print(stderr, "loaded in {:.2f} s, {} threads\n", load.seconds(), session.threads());
  print_rates(options, session, rates(options, decoder));
  warn_about_cache(session);
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure how fast a language model reads a prompt and writes tokens");
  command->add_option("model", options->model, "GGUF file, or folder with config.json and safetensors files")
      ->required()
      ->type_name("PATH");
  const auto count = [&](const char* name, std::int64_t& value, const char* text) {
    command->add_option(name, value, text)->capture_default_str()->type_name("N")->check(CLI::Range(0, 1 << 20).description(""));
  };
  count("-p,--prompt", options->prompt, "Tokens of the prompt (pp); 0: not measured");
  count("-n,--tokens", options->tokens, "Tokens written one by one (tg); 0: not measured");
  count("-d,--depth", options->depth, "Tokens in the cache before either");
  command->add_option("-r,--repeats", options->repeats, "Measurements of each, 1..1000, after one that does not count")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""));
  command->add_flag("--json", options->json, "One JSON object a line for each measurement");
  add_kernel_choices(*command, options->compile);
  add_precision(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer("The mean and standard deviation of tokens a second.\n\nExample:\n  rlx bench model.gguf -p 512 -n 128");
  command->callback([options] { bench(*options); });
}

}  // namespace rlx::command
