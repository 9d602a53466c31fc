#include <memory>

#include "base/names.h"
#include "command.h"
#include "files/text_lines.h"
#include "formats/json/json.h"
#include "options/compile_choices.h"
#include "options/warnings.h"
#include "rlx/mask_filler.h"

namespace rlx::command {
namespace {

struct FillOptions {
  std::string model, text, file;
  bool json = false;
  MaskFillerOptions filler;
  CompileChoices compile;
};

void print_words(const std::vector<MaskWord>& words) {
  for (const MaskWord& word : words) fmt::print("{:>8.4f}  {}\n", word.probability, word.text);
}

void print_json(std::size_t line, std::size_t mask, const std::vector<MaskWord>& words) {
  json::Value all = json::Value::array();
  for (const MaskWord& word : words) all.push_back({{"text", word.text}, {"token", word.token}, {"probability", word.probability}});
  fmt::print("{}\n", json::line({{"line", line + 1}, {"mask", mask + 1}, {"words", std::move(all)}}));
}

void fill(const FillOptions& options) {
  check_utf8(options.text, "the text");
  const std::vector<std::string> texts = options.file.empty() ? std::vector{options.text} : read_text_lines(options.file);
  const Session session = open_session(options.compile);
  const MaskFiller filler = MaskFiller::open(options.model, session, options.filler);
  warn_about_precision(options.compile, options.model);
  const auto filled = filler.fill(texts);
  for (std::size_t line = 0; line < filled.size(); ++line)
    for (std::size_t mask = 0; mask < filled[line].size(); ++mask) {
      if (options.json) {
        print_json(line, mask, filled[line][mask]);
        continue;
      }
      if (filled.size() > 1 || filled[line].size() > 1) fmt::print("{}text {}, mask {}\n", line + mask > 0 ? "\n" : "", line + 1, mask + 1);
      print_words(filled[line][mask]);
    }
  warn_about_cache(session);
}

}  // namespace

void add_fill(CLI::App& app) {
  auto options = std::make_shared<FillOptions>();
  CLI::App* command =
      app.add_subcommand("fill", "Say the likeliest words of the masks in a text, with a masked-language model such as BERT");
  command->add_option("--model", options->model, "Folder with config.json, safetensors files and a tokenizer, or a GGUF file")
      ->required()
      ->type_name("PATH");
  CLI::Option* text =
      command->add_option("text", options->text, "A text with [MASK], or <mask>, as the model's tokenizer spells it")->type_name("TEXT");
  CLI::Option* file = command->add_option("--file", options->file, "File of text lines, each with a mask; - reads standard input");
  file->type_name("FILE")->excludes(text);
  command->add_option("-k,--words", options->filler.words, "Words of each mask, the likeliest first")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::PositiveNumber.description(""));
  command->add_flag("--json", options->json, R"(One object a mask: {"line", "mask", "words": [{"text", "token", "probability"}]})");
  command->add_option("--batch-size", options->filler.batch_size, "Most texts that run together, 1..4096; memory grows with it")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  add_kernel_choices(*command, options->compile);
  add_tune(*command, options->compile);
  add_precision(*command, options->compile);
  add_activations(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer("Example:\n  rlx fill --model bert-base-uncased -k 3 'The capital of France is [MASK].'");
  command->callback([options, text, file] {
    if (text->count() + file->count() == 0) fail("fill: there is no text (give one, or --file FILE)");
    fill(*options);
  });
}

}  // namespace rlx::command
