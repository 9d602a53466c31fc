#include <memory>
#include <optional>

#include "base/names.h"
#include "command.h"
#include "files/text_lines.h"
#include "files/text_parts.h"
#include "files/writable.h"
#include "formats/json/json.h"
#include "options/adapter_choices.h"
#include "options/compile_choices.h"
#include "options/warnings.h"
#include "rlx/reranker.h"
#include "terminal/progress_bar.h"

namespace rlx::command {
namespace {

struct RerankOptions {
  std::string model, query, file = "-";
  bool json = false, in_order = false;
  std::optional<bool> sigmoid;
  std::int64_t batch_size = 32;
  std::vector<Adapter> adapters;
  CompileChoices compile;
};

/// A line of the result; `text` is line `index` of the input, from 0.
void print_scored(bool as_json, std::size_t index, float score, const std::string& text) {
  const auto line = [&] { return json::line({{"line", index + 1}, {"score", score}, {"text", text}}); };
  fmt::print("{}\n", as_json ? line() : fmt::format("{:>10.6f}  {}", score, text));
}

void print_sorted(const RerankOptions& options, const Reranker& reranker, std::span<const std::string> texts) {
  std::vector<RankedText> ranked;
  {
    ProgressBar bar("scoring");
    ranked = reranker.rank(options.query, texts, [&](std::size_t done, std::size_t total) { bar.update(done, total); });
  }
  for (const RankedText& each : ranked) print_scored(options.json, each.index, each.score, texts[each.index]);
}

/// Each part of the texts as soon as it has its scores.
void print_in_order(const RerankOptions& options, const Reranker& reranker, std::span<const std::string> texts) {
  ProgressBar bar("scoring");
  std::size_t printed = 0;
  for (const std::span<const std::string> part : parts_of(texts, options.batch_size)) {
    const auto show = [&](std::size_t done, std::size_t) { bar.update(printed + done, texts.size()); };
    const std::vector<float> scores = reranker.score(options.query, part, show);
    bar.clear();
    for (float score : scores) print_scored(options.json, printed, score, texts[printed]), ++printed;
    flush_output();
  }
}

void rerank(const RerankOptions& options) {
  check_utf8(options.query, "--query");
  const std::vector<std::string> texts = read_text_lines(options.file);
  const Session session = open_session(options.compile);
  const auto reranker =
      Reranker::open(options.model, session, {.batch_size = options.batch_size, .sigmoid = options.sigmoid, .adapters = options.adapters});
  warn_about_precision(options.compile, options.model);
  (options.in_order ? print_in_order : print_sorted)(options, reranker, texts);
  warn_about_cache(session);
}

}  // namespace

void add_rerank(CLI::App& app) {
  auto options = std::make_shared<RerankOptions>();
  CLI::App* command = app.add_subcommand("rerank", "Sort lines of text by how well they answer a query, with a cross-encoder");
  command->add_option("--model", options->model, "Folder with config.json, safetensors files and a tokenizer, or a GGUF file")
      ->required()
      ->type_name("PATH");
  command->add_option("--query", options->query, "What the lines are to answer")->required()->type_name("TEXT");
  command->add_option("file", options->file, "File of text lines; - reads standard input (the default)")->type_name("FILE");
  command->add_flag("--json", options->json, R"(One object a line: {"line", "score", "text"}, lines counted from 1)");
  command->add_flag("--in-order", options->in_order, "Lines in the order of the input, each as soon as it has its score");
  CLI::Option* sigmoid = command->add_flag_callback(
      "--sigmoid", [options] { options->sigmoid = true; },
      "Scores in 0..1 by a sigmoid, whatever the model's config says (the default where it says nothing)");
  command->add_flag_callback("--raw", [options] { options->sigmoid = false; }, "Scores as the model gives them")->excludes(sigmoid);
  command->add_option("--batch-size", options->batch_size, "Most texts that run together, 1..4096; memory grows with it")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  add_adapters(*command, options->adapters);
  add_kernel_choices(*command, options->compile);
  add_tune(*command, options->compile);
  add_precision(*command, options->compile);
  add_activations(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer("Example:\n  rlx rerank --model bge-reranker-base --query 'how do I reset my password?' answers.txt");
  command->callback([options] { rerank(*options); });
}

}  // namespace rlx::command
