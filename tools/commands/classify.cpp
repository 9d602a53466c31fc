#include <memory>

#include "base/names.h"
#include "command.h"
#include "files/text_lines.h"
#include "files/text_parts.h"
#include "files/writable.h"
#include "formats/json/json.h"
#include "options/adapter_choices.h"
#include "options/compile_choices.h"
#include "options/warnings.h"
#include "rlx/classifier.h"
#include "terminal/progress_bar.h"

namespace rlx::command {
namespace {

struct ClassifyOptions {
  std::string model, text, second, file;
  bool json = false;
  std::int64_t top = 1;
  ClassifierOptions classifier;
  CompileChoices compile;
};

void print_labels(const ClassifyOptions& options, const Classifier& classifier, std::size_t line, const std::string& text,
                  std::span<const ScoredLabel> labels) {
  labels = labels.first(std::min(labels.size(), static_cast<std::size_t>(options.top)));
  json::Value all = json::Value::array();
  std::string words;
  for (const auto& [label, score] : labels) {
    all.push_back({{"label", classifier.labels()[label]}, {"score", score}});
    words += fmt::format("{:>8.4f}  {}  ", score, classifier.labels()[label]);
  }
  fmt::print("{}\n", options.json ? json::line({{"line", line + 1}, {"labels", std::move(all)}, {"text", text}}) : words + text);
}

void print_parts(const ClassifyOptions& options, std::size_t line, const std::string& text, std::span<const LabelledPart> parts) {
  json::Value all = json::Value::array();
  if (!options.json && line > 0) fmt::print("\n");
  if (!options.json) fmt::print("{}\n", text);
  for (const LabelledPart& part : parts) {
    const std::string words = text.substr(part.begin, part.end - part.begin);
    if (options.json)
      all.push_back({{"label", part.label}, {"score", part.score}, {"begin", part.begin}, {"end", part.end}, {"text", words}});
    else fmt::print("{:>8.4f}  {}  {}\n", part.score, part.label, words);
  }
  if (options.json) fmt::print("{}\n", json::line({{"line", line + 1}, {"parts", std::move(all)}, {"text", text}}));
}

std::vector<std::vector<ScoredLabel>> labels_of(const ClassifyOptions& options, const Classifier& classifier,
                                                std::span<const std::string> texts, const Classifier::Progress& show, std::size_t before) {
  if (options.second.empty()) return classifier.classify(texts, show, before);
  std::vector<TextPair> pairs;
  for (const std::string& text : texts) pairs.push_back({text, options.second});
  return classifier.classify(pairs, show, before);
}

void classify(const ClassifyOptions& options) {
  check_utf8(options.text, "the text");
  check_utf8(options.second, "--second");
  const std::vector<std::string> texts = options.file.empty() ? std::vector{options.text} : read_text_lines(options.file);
  const Session session = open_session(options.compile);
  const Classifier classifier = Classifier::open(options.model, session, options.classifier);
  if (classifier.labels_parts() && !options.second.empty()) fail("--second: the model labels parts of single texts");
  warn_about_precision(options.compile, options.model);
  ProgressBar bar("labelling");
  std::size_t printed = 0;
  for (const std::span<const std::string> part : parts_of(texts, options.classifier.batch_size)) {
    const auto show = [&](std::size_t done, std::size_t) { bar.update(printed + done, texts.size()); };
    const bool parts = classifier.labels_parts();
    const auto labels = parts ? std::vector<std::vector<ScoredLabel>>() : labels_of(options, classifier, part, show, printed);
    const auto places = parts ? classifier.parts(part, show, printed) : std::vector<std::vector<LabelledPart>>();
    bar.clear();
    for (std::size_t i = 0; i < part.size(); ++i, ++printed) {
      if (parts) print_parts(options, printed, part[i], places[i]);
      else print_labels(options, classifier, printed, part[i], labels[i]);
    }
    flush_output();
  }
  warn_about_cache(session);
}

}  // namespace

void add_classify(CLI::App& app) {
  auto options = std::make_shared<ClassifyOptions>();
  CLI::App* command = app.add_subcommand("classify", "Label texts, or names and places in them, with a classifier such as BERT");
  command->add_option("--model", options->model, "Folder with config.json, safetensors files and a tokenizer, or a GGUF file")
      ->required()
      ->type_name("PATH");
  CLI::Option* text = command->add_option("text", options->text, "A text to label")->type_name("TEXT");
  CLI::Option* file = command->add_option("--file", options->file, "File of text lines; - reads standard input");
  file->type_name("FILE")->excludes(text);
  command
      ->add_option("--second", options->second, "A second text behind each one, for models that label pairs: a premise and what may follow")
      ->type_name("TEXT");
  command
      ->add_option("-k,--top", options->top, "Labels of each text, the likeliest first; of models that label parts of texts, all are shown")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::PositiveNumber.description(""));
  command->add_flag("--json", options->json,
                    R"(One object a line: {"line", "labels": [{"label", "score"}], "text"}, or "parts" with "begin", "end", "text" too)");
  command->add_option("--batch-size", options->classifier.batch_size, "Most texts that run together, 1..4096; memory grows with it")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  add_adapters(*command, options->classifier.adapters);
  add_kernel_choices(*command, options->compile);
  add_tune(*command, options->compile);
  add_precision(*command, options->compile);
  add_activations(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer("Example:\n  rlx classify --model bert-base-NER 'Ada Lovelace worked in London.'");
  command->callback([options, text, file] {
    if (text->count() + file->count() == 0) fail("classify: there is no text (give one, or --file FILE)");
    classify(*options);
  });
}

}  // namespace rlx::command
