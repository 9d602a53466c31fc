#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "command.h"
#include "formats/json/json.h"
#include "models/run/batches/batched_decoder.h"
#include "models/run/caches/cached_decoder.h"
#include "models/weights/decoder_files.h"
#include "options/adapter_choices.h"
#include "options/cache_choice.h"
#include "options/compile_choices.h"
#include "options/warnings.h"
#include "rlx/session.h"
#include "terminal/say.h"
#include "terminal/stopwatch.h"

namespace rlx::command {
namespace {

struct BenchOptions {
  std::string model;
  std::vector<Adapter> adapters;
  std::int64_t prompt = 512, tokens = 128, depth = 0, sequences = 1;
  int repeats = 5;
  bool json = false;
  CacheType cache = CacheType::usual;
  bool exact = false;
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

/// A model with the sequences that it continues together, all with the same tokens.
struct Sequences {
  std::int64_t vocab_size;
  std::function<void(std::int64_t)> rewind;
  std::function<void(std::span<const std::int32_t>)> append;
};

Sequences one_sequence(const Session& session, const DecoderFiles& model, const CachedDecoder::Options& options) {
  const auto decoder = std::make_shared<CachedDecoder>(session, model, options);
  return {model.config.vocab_size, [=](std::int64_t length) { decoder->rewind(length); },
          [=](std::span<const std::int32_t> ids) { decoder->append(ids); }};
}

Sequences many_sequences(const Session& session, const DecoderFiles& model, const CachedDecoder::Options& each, std::int64_t count) {
  const BatchedDecoder::Options options{.context = each.context,
                                        .tokens = count * (each.context + page_tokens),
                                        .cache = each.cache,
                                        .exact = each.exact,
                                        .layers_on = each.layers_on};
  const auto decoder = std::make_shared<BatchedDecoder>(session, model, options);
  std::vector<BatchedDecoder::Sequence> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(decoder->add());
  const auto rewind = [=](std::int64_t length) {
    for (const auto sequence : all) decoder->rewind(sequence, length);
  };
  const auto append = [=](std::span<const std::int32_t> ids) {
    std::vector<BatchedDecoder::Tokens> tokens;
    for (const auto sequence : all) tokens.push_back({sequence, ids});
    decoder->append(tokens);
  };
  return {model.config.vocab_size, rewind, append};
}

/// Runs `work` on caches of `depth` tokens, once unmeasured, then as often as asked for; `tokens` are those of one sequence.
Rate measured(const BenchOptions& options, const Sequences& sequences, std::string_view kind, std::int64_t tokens,
              const std::function<void()>& work) {
  Rate rate{.name = fmt::format("{}{}", kind, tokens), .tokens = tokens * options.sequences};
  if (options.sequences > 1) rate.name += fmt::format(" x {}", options.sequences);
  if (options.depth > 0) rate.name += fmt::format(" @ {}", options.depth);
  const auto before = some_tokens(options.depth, sequences.vocab_size);
  sequences.rewind(0);
  if (options.depth > 0) sequences.append(before);
  for (int i = 0; i <= options.repeats; ++i) {
    // Recurrent models and those with windows forget more than what is taken back; what they then read again is not measured.
    sequences.rewind(std::max<std::int64_t>(options.depth - 1, 0));
    if (options.depth > 0) sequences.append(std::span(before).last(1));
    const Stopwatch time;
    work();
    if (i > 0) rate.samples.push_back(static_cast<double>(rate.tokens) / time.seconds());
  }
  return rate;
}

std::vector<Rate> rates(const BenchOptions& options, const Sequences& sequences) {
  std::vector<Rate> results;
  if (options.prompt > 0) {
    const auto prompt = some_tokens(options.prompt, sequences.vocab_size);
    results.push_back(measured(options, sequences, "pp", options.prompt, [&] { sequences.append(prompt); }));
  }
  if (options.tokens > 0) {
    const auto tokens = some_tokens(options.tokens, sequences.vocab_size);
    results.push_back(measured(options, sequences, "tg", options.tokens, [&] {
      for (const std::int32_t& id : tokens) sequences.append(std::span(&id, 1));
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
      fmt::print("{}\n", json::line(line));
    } else {
      fmt::print("{:<16} {:>10.2f} ± {:.2f} tok/s\n", rate.name, rate.mean(), rate.deviation());
    }
  }
}

void bench(const BenchOptions& options) {
  if (options.prompt == 0 && options.tokens == 0) throw CLI::ValidationError("--prompt and --tokens", "one of them must be above 0");
  const Session session = open_session(options.compile, options.model);
  const Stopwatch load;
  const std::int64_t context = options.depth + std::max({options.prompt, options.tokens, std::int64_t{1}});
  const DecoderFiles model = DecoderFiles::open(options.model, options.adapters);
  warn_about_context(context, model.config.max_positions);
  warn_about_precision(options.compile, options.model);
  const CachedDecoder::Options its{.context = context,
                                   .cache = resolved(options.cache, session.precision()),
                                   .exact = options.exact,
                                   .layers_on = open_layers_on(options.compile, session)};
  const Sequences sequences =
      options.sequences == 1 ? one_sequence(session, model, its) : many_sequences(session, model, its, options.sequences);
  say("loaded in {:.2f} s, {} threads\n", load.seconds(), session.threads());
  print_rates(options, session, rates(options, sequences));
  warn_about_cache(session);
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure how fast a language model reads a prompt and writes tokens");
  command->add_option("model", options->model, "GGUF file, or folder with config.json and safetensors files")
      ->required()
      ->type_name("PATH");
  add_adapters(*command, options->adapters);
  const auto count = [&](const char* name, std::int64_t& value, const char* text) {
    command->add_option(name, value, text)->capture_default_str()->type_name("N")->check(CLI::Range(0, 1 << 20).description(""));
  };
  count("-p,--prompt", options->prompt, "Tokens of the prompt (pp); 0: not measured");
  count("-n,--tokens", options->tokens, "Tokens written one by one (tg); 0: not measured");
  count("-d,--depth", options->depth, "Tokens in the cache before either");
  command->add_option("-s,--sequences", options->sequences, "Sequences that run together, 1..1024; the figures are of all of them")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  command->add_option("-r,--repeats", options->repeats, "Measurements of each, 1..1000, after one that does not count")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""));
  add_cache_type(*command, options->cache);
  add_exact(*command, options->exact);
  command->add_flag("--json", options->json, "One JSON object a line for each measurement");
  add_model_choices(*command, options->compile);
  command->footer("The mean and standard deviation of tokens a second.\n\nExample:\n  rlx bench model.gguf -p 512 -n 128");
  command->callback([options] { bench(*options); });
}

}  // namespace rlx::command
