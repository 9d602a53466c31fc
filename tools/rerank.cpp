#include <memory>
#include <optional>

#include "adapter_choices.h"
#include "command.h"
#include "compile_choices.h"
#include "formats/json.h"
#include "progress_bar.h"
#include "rlx/reranker.h"
#include "text_lines.h"

namespace rlx::command {
namespace {

struct RerankOptions {
  std::string model, query, file = "-";
  bool json = false;
  std::optional<bool> sigmoid;
  std::int64_t batch_size = 32;
  std::vector<Adapter> adapters;
  CompileChoices compile;
};

void print_ranked_json(const RankedText& ranked, const std::string& text) {
  const json::Value line{{"line", ranked.index + 1}, {"score", ranked.score}, {"text", text}};
  fmt::print("{}\n", json::line(line));
}

void rerank(const RerankOptions& options) {
  const std::vector<std::string> texts = read_text_lines(options.file);
  const Session session = open_session(options.compile);
  const auto reranker =
      Reranker::open(options.model, session, {.batch_size = options.batch_size, .sigmoid = options.sigmoid, .adapters = options.adapters});
  std::vector<RankedText> ranked;
  {
    ProgressBar bar("scoring");
    ranked = reranker.rank(options.query, texts, [&](std::size_t done, std::size_t total) { bar.update(done, total); });
  }
  for (const RankedText& each : ranked) {
    if (options.json) print_ranked_json(each, texts[each.index]);
    else fmt::print("{:>10.6f}  {}\n", each.score, texts[each.index]);
  }
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
  add_threads(*command, options->compile);
  command->footer("Example:\n  rlx rerank --model bge-reranker-base --query 'how do I reset my password?' answers.txt");
  command->callback([options] { rerank(*options); });
}

}  // namespace rlx::command
