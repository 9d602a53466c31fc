#include "rlx/perplexity.h"

#include <algorithm>
#include <memory>
#include <variant>

#include "command.h"
#include "files/text_lines.h"
#include "formats/json/json.h"
#include "models/weights/decoder_files.h"
#include "options/adapter_choices.h"
#include "options/cache_choice.h"
#include "options/compile_choices.h"
#include "options/warnings.h"
#include "terminal/progress_bar.h"
#include "terminal/stopwatch.h"

namespace rlx::command {
namespace {

struct PerplexityCommand {
  std::string model, file;
  std::vector<Adapter> adapters;
  PerplexityOptions options{.context = 0};  // as is usual
  bool json = false;
  CacheType cache = CacheType::usual;
  CompileChoices compile;
};

void print_result(const PerplexityCommand& command, const Session& session, const Perplexity& p, double seconds) {
  const std::int64_t read = p.windows * command.options.context;
  const double rate = static_cast<double>(read) / seconds;
  if (command.json) {
    const json::Value line{{"model", command.model},
                           {"file", command.file},
                           {"context", command.options.context},
                           {"stride", command.options.stride},
                           {"windows", p.windows},
                           {"tokens", p.tokens},
                           {"nll", p.nll},
                           {"nll_error", p.nll_error},
                           {"perplexity", p.value()},
                           {"perplexity_error", p.error()},
                           {"threads", session.threads()},
                           {"seconds", seconds},
                           {"tokens_per_second", rate}};
    fmt::print("{}\n", json::line(line));
    return;
  }
  fmt::print("perplexity {:.5f} ± {:.5f} (mean NLL {:.6f} ± {:.6f} of {} tokens)\n", p.value(), p.error(), p.nll, p.nll_error, p.tokens);
  fmt::print("{} windows of {} tokens in {:.2f} s, {:.1f} tok/s\n", p.windows, command.options.context, seconds, rate);
}

Perplexity with_progress(Model& model, const std::string& text, PerplexityOptions options) {
  ProgressBar bar("windows");
  options.progress = [&](std::size_t done, std::size_t windows) { bar.update(done, windows); };
  return perplexity(model, text, options);
}

/// What others measure with, or all that the model reads at once.
std::int64_t usual_window(const std::filesystem::path& path) {
  const auto trained = [](const auto& model) { return model.trained_context(); };
  return std::min(PerplexityOptions().context, std::visit(trained, open_language_model(path)));
}

void measure_perplexity(PerplexityCommand command) {
  const std::string text = read_whole_text(command.file);
  PerplexityOptions& options = command.options;
  if (options.context == 0) options.context = usual_window(command.model);
  options.file = input_name(command.file);
  const Session session = open_session(command.compile, command.model);
  Model model = Model::open(command.model, session,
                            {.context = command.options.context,
                             .adapters = command.adapters,
                             .cache = command.cache,
                             .layers_on = open_layers_on(command.compile, session)});
  warn_about_context(options.context, model.trained_context());
  warn_about_precision(command.compile, command.model);
  const Stopwatch time;
  const Perplexity result = with_progress(model, text, options);
  print_result(command, session, result, time.seconds());
  warn_about_cache(session);
}

}  // namespace

void add_perplexity(CLI::App& app) {
  auto options = std::make_shared<PerplexityCommand>();
  CLI::App* command = app.add_subcommand("perplexity", "Measure how well a language model predicts a text");
  command->add_option("model", options->model, "GGUF file, or folder with config.json, tokenizer.json and safetensors files")
      ->required()
      ->type_name("PATH");
  add_adapters(*command, options->adapters);
  command->add_option("-f,--file", options->file, "The text, UTF-8; -: standard input")->required()->type_name("FILE");
  const auto count = [&](const char* name, std::int64_t& value, const char* text, int least) {
    return command->add_option(name, value, text)->type_name("N")->check(CLI::Range(least, 1 << 30).description(""));
  };
  count("--context", options->options.context, "Tokens of a window, 3 at least; default: 512, or as many as the model was trained for", 3);
  count("--stride", options->options.stride, "Tokens from one window to the next, fewer than a window has; default: windows do not overlap",
        1);
  add_cache_type(*command, options->cache);
  command->add_flag("--json", options->json, "The result as one JSON object");
  add_model_choices(*command, options->compile);
  command->footer(
      "exp(mean of -log(probability)) of the judged tokens, with its standard error, as llama.cpp's tool has it: the text is cut into\n"
      "windows, each is read from an empty cache with the token that texts begin with in place of its first, if the tokenizer has one,\n"
      "and the tokens behind the first half and one more are judged. What is left behind the last whole window counts nowhere.\n"
      "With --stride the last N tokens of each window are judged instead.\n\n"
      "Example:\n  rlx perplexity model.gguf -f wiki.test.raw");
  command->callback([options] { measure_perplexity(*options); });
}

}  // namespace rlx::command
