#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "base/names.h"
#include "command.h"
#include "files/text_lines.h"
#include "files/writable.h"
#include "formats/json/json.h"
#include "options/compile_choices.h"
#include "options/generation_choices.h"
#include "options/warnings.h"
#include "rlx/model.h"
#include "terminal/interrupt.h"
#include "terminal/say.h"
#include "terminal/stopwatch.h"
#include "text/tokenizer/token_decoder.h"

namespace rlx::command {
namespace {

struct RunOptions {
  RunOptions() { generation.tokens = 256, generation.sampling.options.temperature = 0; }

  GenerationChoices generation;
  std::string prompt, file = "-", cache;
  std::vector<std::string> stop;
  bool no_stats = false, json = false;
  CompileChoices compile;
};

/// What a user waits for: opening the model, the prompt, and each further token.
struct RunTimes {
  double open = 0, prompt = 0, answer = 0;
  std::size_t prompt_tokens = 0, answer_tokens = 0;
};

void print_run_times(const RunTimes& t, Guesses guesses, int threads) {
  const auto rate = [](std::size_t tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; };
  say("\nopened in {:.2f} s, {} threads; prompt: {} tokens in {:.2f} s ({:.1f} tok/s); answer: {} tokens, {:.1f} tok/s{}\n", t.open,
      threads, t.prompt_tokens, t.prompt, rate(t.prompt_tokens, t.prompt), t.answer_tokens,
      rate(t.answer_tokens > 0 ? t.answer_tokens - 1 : 0, t.answer),
      guesses.tried > 0 ? fmt::format("; {} of {} guesses were right", guesses.right, guesses.tried) : "");
}

void print_text(Generation& answer) {
  for (const std::string& piece : answer) {
    fmt::print("{}", piece);
    flush_output();
  }
  fmt::print("\n");
  flush_output();  // before what may follow on stderr
}

std::string text_of(const Model& model, std::int32_t id) { return replace_invalid_utf8(model.bytes_of(id)); }

/// Calls `print` with the number of each token as soon as it is chosen; the text of all.
std::string print_tokens(Generation& answer, const std::function<void(std::size_t)>& print) {
  std::string text;
  std::size_t printed = 0;
  const auto print_new = [&] {
    while (printed < answer.ids().size()) print(printed++);
    flush_output();
  };
  for (const std::string& piece : answer) text += piece, print_new();
  print_new();
  return text;
}

json::Value described(const Model& model, const LogProbability& token) {
  return {{"id", token.id}, {"text", text_of(model, token.id)}, {"logprob", token.value}};
}

/// One JSON object a token, then one of the whole answer.
void print_json(const Model& model, Generation& answer) {
  const std::string text = print_tokens(answer, [&](std::size_t i) {
    json::Value line{{"id", answer.ids()[i]}, {"text", text_of(model, answer.ids()[i])}};
    if (!answer.log_probabilities().empty()) {
      const std::span<const LogProbability> tokens = answer.log_probabilities()[i];
      line = described(model, tokens[0]);
      line["likeliest"] = json::Value::array();
      for (const LogProbability& token : tokens.subspan(1)) line["likeliest"].push_back(described(model, token));
    }
    fmt::print("{}\n", json::line(line));
  });
  fmt::print("{}\n", json::line({{"text", text}, {"tokens", answer.ids().size()}, {"finish_reason", name_of(answer.finish_reason())}}));
  flush_output();
}

/// One line a token: its log-probability and text, then those of the likeliest.
void print_log_probabilities(const Model& model, Generation& answer) {
  print_tokens(answer, [&](std::size_t i) {
    std::string line;
    for (const LogProbability& token : answer.log_probabilities()[i]) {
      const std::string cell = fmt::format("{:8.4f} {}", token.value, json::quote(text_of(model, token.id), "token"));
      line += fmt::format("{}{:<24}", line.empty() ? "" : " | ", cell);
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  });
}

/// What an earlier run left in the file of --cache.
void load_cache(Model& model, const std::string& file) {
  std::error_code error;
  if (file.empty() || (model.continues_texts() && !std::filesystem::exists(file, error))) return;
  if (!model.load_cache(file).empty()) fail("{}: keeps a conversation, which would be lost (rlx chat goes on with it)", file);
}

/// Of a file without the end of its last line, which editors and `echo` write and nobody means: a model would begin a new line behind it.
std::string prompt_of(const RunOptions& options) {
  if (!options.prompt.empty()) return check_utf8(options.prompt, "the prompt"), options.prompt;
  std::string text = read_whole_text(options.file);
  if (text.ends_with('\n')) text.resize(text.size() - (text.ends_with("\r\n") ? 2 : 1));
  return text;
}

void run(const RunOptions& options) {
  const std::string text = prompt_of(options);
  for (const std::string& stop : options.stop) check_utf8(stop, "--stop");
  if (!options.cache.empty()) check_writable(options.cache);
  const Session session = open_session(options.compile, options.generation.model);
  RunTimes times;
  const Stopwatch open;
  auto [model, generate] = open_model(options.generation, session, open_layers_on(options.compile, session));
  warn_about_precision(options.compile, options.generation.model);
  generate.stop = options.stop;
  load_cache(model, options.cache);
  std::optional<AnswerInterrupt> interrupt;  // what is computed is kept
  if (!options.cache.empty()) interrupt.emplace();
  if (interrupt) generate.cancelled = [&] { return interrupt->pressed(); };
  times.open = open.seconds();
  const std::vector<std::int32_t> prompt = model.tokenize(text);
  times.prompt_tokens = prompt.size();
  const Stopwatch prompt_time;
  Generation answer = model.generate(prompt, generate);
  times.prompt = prompt_time.seconds();
  const Stopwatch answer_time;
  if (options.json) print_json(model, answer);
  else if (generate.sampling.log_probabilities >= 0) print_log_probabilities(model, answer);
  else print_text(answer);
  times.answer = answer_time.seconds(), times.answer_tokens = answer.ids().size();
  if (!options.cache.empty() && !model.ids().empty()) model.save_cache(options.cache);
  if (interrupt && interrupt->pressed()) end_by_interrupt();
  if (!options.no_stats) print_run_times(times, answer.guesses(), session.threads());
  if (answer.finish_reason() == FinishReason::context_full)
    say("the context of {} tokens is full (--context N makes room{})\n", model.context(),
        model.continues_texts() ? ", --context-shift forgets" : "");
  warn_about_cache(session);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Continue a prompt with a language model; the text appears as it is made");
  CLI::Option* prompt = command->add_option("-p,--prompt", options->prompt, "The text to continue");
  prompt->type_name("TEXT");
  CLI::Option* file = command->add_option(
      "-f,--file", options->file, "A file with the text to continue, UTF-8, but for its last line end; -: standard input (the default)");
  file->type_name("FILE")->excludes(prompt);
  add_generation(*command, options->generation);
  command->add_option("text", options->prompt, "The text to continue, as --prompt")->type_name("TEXT")->excludes(prompt, file);
  CLI::Option* stop = command->add_option("--stop", options->stop, "A text that ends the answer; may be given several times");
  stop->type_name("TEXT")->allow_extra_args(false);  // the next word is the prompt
  command
      ->add_option("--logprobs", options->generation.sampling.options.log_probabilities,
                   "A line for each token: its log-probability, then the N likeliest tokens and theirs")
      ->type_name("N")
      ->check(CLI::Range(0, 1000).description(""));
  command->add_flag("--json", options->json, "A JSON object for each token, on a line of its own, and one for the whole answer");
  command
      ->add_option("--cache", options->cache,
                   "Where the computed tokens are kept: read if the file exists, written at the end, by Ctrl-C too. What a prompt shares "
                   "with them is free")
      ->type_name("FILE");
  command->add_flag("--no-stats", options->no_stats, "Say nothing of times on stderr");
  add_model_choices(*command, options->compile);
  command->footer(
      "Examples:\n  rlx run model.gguf 'Once upon a time' -n 64\n"
      "  rlx run model.gguf -p 'Ada, as JSON: ' --json-schema "
      "'{\"type\": \"object\", \"properties\": {\"born\": {\"type\": \"integer\"}}, \"required\": [\"born\"]}'");
  command->callback([options] { run(*options); });
}

}  // namespace rlx::command
