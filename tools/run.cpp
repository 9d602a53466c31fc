#include <cstdio>
#include <memory>

#include "command.h"
#include "compile_choices.h"
#include "rlx/model.h"
#include "sampling_choices.h"
#include "stopwatch.h"

namespace rlx::command {
namespace {

struct RunOptions {
  RunOptions() { sampling.temperature = 0; }

  std::string model, prompt;
  std::vector<std::string> stop;
  std::int64_t tokens = 256, context = 0;
  bool no_stats = false;
  sampling::Options sampling;
  CompileChoices compile;
};

/// What a user waits for: opening the model, the prompt, and each further token.
struct RunTimes {
  double open = 0, prompt = 0, answer = 0;
  std::size_t prompt_tokens = 0, answer_tokens = 0;
};

void print_run_times(const RunTimes& t, int threads) {
  const auto rate = [](std::size_t tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; };
  fmt::print(stderr, "\nopened in {:.2f} s, {} threads; prompt: {} tokens in {:.2f} s ({:.1f} tok/s); answer: {} tokens, {:.1f} tok/s\n",
             t.open, threads, t.prompt_tokens, t.prompt, rate(t.prompt_tokens, t.prompt), t.answer_tokens,
             rate(t.answer_tokens > 0 ? t.answer_tokens - 1 : 0, t.answer));
}

void run(const RunOptions& options) {
  const Session session = open_session(options.compile);
  RunTimes times;
  const Stopwatch open;
  Model model = Model::open(options.model, session, {.context = options.context});
  times.open = open.seconds();
  const std::vector<std::int32_t> prompt = model.tokenize(options.prompt);
  times.prompt_tokens = prompt.size();
  const Stopwatch prompt_time;
  Generation answer = model.generate(
      prompt, {.max_tokens = options.tokens, .stop = options.stop, .choose = chooser(options.sampling, model.vocab_size(), prompt)});
  times.prompt = prompt_time.seconds();
  const Stopwatch answer_time;
  for (const std::string& piece : answer) {
    fmt::print("{}", piece);
    std::fflush(stdout);
  }
  fmt::print("\n");
  times.answer = answer_time.seconds(), times.answer_tokens = answer.ids().size();
  if (!options.no_stats) print_run_times(times, session.threads());
  if (answer.finish_reason() == FinishReason::context_full)
    fmt::print(stderr, "the context of {} tokens is full (--context N makes room)\n", model.context());
  warn_about_cache(session);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Continue a prompt with a language model; the text appears as it is made");
  command->add_option("model", options->model, "GGUF file, or folder with config.json, tokenizer.json and safetensors files")
      ->required()
      ->type_name("PATH");
  command->add_option("-p,--prompt", options->prompt, "The text to continue")->required()->type_name("TEXT");
  command->add_option("-n,--tokens", options->tokens, "Most tokens of the answer; 0: until the context is full")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30).description(""));
  command->add_option("--context", options->context, "Tokens that fit, prompt and answer; 0: as many as the model allows, at most 8192")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30).description(""));
  command->add_option("--stop", options->stop, "A text that ends the answer; may be given several times")->type_name("TEXT");
  command->add_flag("--no-stats", options->no_stats, "Say nothing of times on stderr");
  add_sampling(*command, options->sampling);
  add_kernel_choices(*command, options->compile);
  add_precision(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer("Example:\n  rlx run model.gguf -p 'Once upon a time' -n 64");
  command->callback([options] { run(*options); });
}

}  // namespace rlx::command
