#include "rlx/classifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/names.h"
#include "models/config/model_folder.h"
#include "models/config/sentence_config.h"
#include "models/families/encoders/text_head.h"
#include "models/run/batches/text_batches.h"
#include "models/run/sentence_graph.h"
#include "models/weights/decoder_files.h"
#include "text/tokenizer/files/open_tokenizer.h"

namespace rlx {

/// What becomes of the numbers of a text's labels.
enum class Scoring : std::uint8_t { softmax, sigmoid, none };

struct Classifier::State {
  DecoderConfig encoder;
  Tokenizer tokenizer;
  Executable executable;
  std::size_t batch_size;
  Scoring scoring;
  std::vector<std::string> labels;

  /// Throws Error for tokens that the model does not have. `number` is the text's, from 1.
  void check(const Encoding& tokens, std::size_t number) const;
  std::vector<Encoding> encode(std::span<const std::string> texts) const;
  std::vector<Encoding> encode(std::span<const TextPair> pairs) const;
  std::vector<std::vector<ScoredLabel>> classify(std::span<const Encoding> texts, const Progress& progress, std::size_t before) const;
  using Take = std::function<void(std::size_t text, std::span<const float> numbers)>;
  void run(std::span<const Encoding> texts, const Take& take, const Progress& progress, std::size_t before) const;
};

namespace {

Scoring scoring_of(const JsonField& config, std::int64_t labels) {
  const auto given = config.find("problem_type");
  const bool is_given = given && !given->value().is_null();
  const std::size_t kind =
      is_given ? given->as_one_of({"single_label_classification", "multi_label_classification", "regression"}) : std::size_t{0};
  if (is_given && kind == 2) return Scoring::none;
  return kind == 1 || labels == 1 ? Scoring::sigmoid : Scoring::softmax;
}

/// The softmax, in f64, of the numbers of one text or token.
std::vector<double> probabilities(std::span<const float> numbers) {
  const double largest = *std::ranges::max_element(numbers);
  std::vector<double> all;
  for (float number : numbers) all.push_back(std::exp(number - largest));
  const double sum = std::accumulate(all.begin(), all.end(), 0.0);
  for (double& each : all) each /= sum;
  return all;
}

std::vector<double> scores_of(Scoring scoring, std::span<const float> numbers) {
  if (scoring == Scoring::softmax) return probabilities(numbers);
  std::vector<double> all(numbers.begin(), numbers.end());
  if (scoring == Scoring::sigmoid)
    for (double& each : all) each = 1 / (1 + std::exp(-each));
  return all;
}

std::vector<ScoredLabel> sorted(std::span<const double> scores) {
  std::vector<ScoredLabel> all;
  for (std::size_t i = 0; i < scores.size(); ++i) all.push_back({i, static_cast<float>(scores[i])});
  std::ranges::stable_sort(all, std::greater(), &ScoredLabel::score);
  return all;
}

void check_labels_whole(const DecoderConfig& encoder) {
  if (encoder.text_head.each_token) fail("classify: the model labels parts of texts (parts gives these)");
}

/// B-PER begins a part with the label PER, I-PER goes on with one, and so does a label without either.
struct Tag {
  explicit Tag(std::string_view name) : begins(name.starts_with("B-")), label(begins || name.starts_with("I-") ? name.substr(2) : name) {}
  bool begins;
  std::string_view label;
};

/// `numbers`: (tokens and more, labels).
std::vector<LabelledPart> parts_of(const Encoding& text, std::span<const float> numbers, const std::vector<std::string>& labels) {
  std::vector<LabelledPart> parts;
  double sum = 0, tokens = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.special_mask[i] != 0) continue;
    const std::vector<double> scores = probabilities(numbers.subspan(i * labels.size(), labels.size()));
    const auto best = std::ranges::max_element(scores);
    const Tag tag(labels[static_cast<std::size_t>(best - scores.begin())]);
    if (parts.empty() || tag.begins || tag.label != parts.back().label) {
      parts.push_back({.label = std::string(tag.label), .begin = text.offsets[i].first});
      sum = tokens = 0;
    }
    sum += *best, ++tokens;
    parts.back().end = text.offsets[i].second;
    parts.back().score = static_cast<float>(sum / tokens);
  }
  std::erase_if(parts, [](const LabelledPart& part) { return part.label == "O"; });
  return parts;
}

}  // namespace

void Classifier::State::check(const Encoding& tokens, std::size_t number) const {
  if (tokens.ids.empty()) fail("text {}: the tokenizer gives no tokens for it, so there is nothing to label", number);
  check_tokens(encoder, tokens);
}

std::vector<Encoding> Classifier::State::encode(std::span<const std::string> texts) const {
  std::vector<Encoding> all;
  for (const std::string& text : texts) all.push_back(tokenizer.encode(text));
  return all;
}

std::vector<Encoding> Classifier::State::encode(std::span<const TextPair> pairs) const {
  std::vector<Encoding> all;
  for (const auto& [first, second] : pairs) all.push_back(tokenizer.encode_pair(first, second));
  return all;
}

std::vector<std::vector<ScoredLabel>> Classifier::State::classify(std::span<const Encoding> texts, const Progress& progress,
                                                                  std::size_t before) const {
  std::vector<std::vector<ScoredLabel>> all(texts.size());
  run(texts, [&](std::size_t text, std::span<const float> numbers) { all[text] = sorted(scores_of(scoring, numbers)); }, progress, before);
  return all;
}

void Classifier::State::run(std::span<const Encoding> texts, const Take& take, const Progress& progress, std::size_t before) const {
  std::vector<TokenRow> rows;
  for (const Encoding& text : texts) {
    check(text, before + rows.size() + 1);
    rows.push_back({.ids = text.ids, .types = text.type_ids});
  }
  const auto checked = [&](std::size_t text, std::span<const float> numbers) {
    if (std::ranges::any_of(numbers.first(encoder.text_head.each_token ? texts[text].size() * labels.size() : labels.size()),
                            [](float number) { return std::isnan(number); }))
      fail("text {}: a score of the model is no number", before + text + 1);
    take(text, numbers);
  };
  run_in_batches(executable, text_form(encoder), rows, batch_size, "scores", checked, progress);
}

Classifier Classifier::open(const std::filesystem::path& path, const Session& session, ClassifierOptions options) {
  check_batch_size(options.batch_size);
  const LanguageModelFiles opened = open_text_encoder(path, options.adapters);
  const auto* files = std::get_if<DecoderFiles>(&opened);
  if (files == nullptr) refuse_encoder_decoder(path, "labelling texts");
  const TextHead& head = files->config.text_head;
  if (head.labels == 0)
    fail("{}: the model has no labels (needed: one for sequence or token classification, such as BertForTokenClassification)",
         path.string());
  const GgufFile* gguf = files->checkpoint.gguf();
  std::vector<std::string> labels;
  Scoring scoring = head.labels == 1 ? Scoring::sigmoid : Scoring::softmax;
  std::int64_t length = files->config.max_positions;
  if (gguf) {
    labels = label_names(*gguf, head.labels);
  } else {
    const ModelFolder folder = ModelFolder::open(path);
    labels = label_names(folder.config(), head.labels);
    scoring = scoring_of(folder.config(), head.labels);
    length = longest_text(path, files->config);
  }
  Tokenizer tokenizer = open_tokenizer(path);
  tokenizer.set_padding(std::nullopt);
  tokenizer.set_truncation(Truncation{.max_length = static_cast<std::size_t>(length)});
  Executable executable = files->compile(session, score_graph("classifier", *files, options.batch_size, length));
  const auto batch_size = static_cast<std::size_t>(options.batch_size);
  return Classifier(
      std::make_shared<State>(State{files->config, std::move(tokenizer), std::move(executable), batch_size, scoring, std::move(labels)}));
}

const std::vector<std::string>& Classifier::labels() const { return state_->labels; }
bool Classifier::labels_parts() const { return state_->encoder.text_head.each_token; }

std::vector<std::vector<ScoredLabel>> Classifier::classify(std::span<const std::string> texts, const Progress& progress,
                                                           std::size_t before) const {
  check_labels_whole(state_->encoder);
  return state_->classify(state_->encode(texts), progress, before);
}

std::vector<std::vector<ScoredLabel>> Classifier::classify(std::span<const TextPair> pairs, const Progress& progress,
                                                           std::size_t before) const {
  check_labels_whole(state_->encoder);
  return state_->classify(state_->encode(pairs), progress, before);
}

std::vector<std::vector<LabelledPart>> Classifier::parts(std::span<const std::string> texts, const Progress& progress,
                                                         std::size_t before) const {
  if (!labels_parts()) fail("parts: the model labels whole texts (classify gives these labels)");
  const std::vector<Encoding> encoded = state_->encode(texts);
  std::vector<std::vector<LabelledPart>> all(texts.size());
  const auto take = [&](std::size_t text, std::span<const float> numbers) { all[text] = parts_of(encoded[text], numbers, state_->labels); };
  state_->run(encoded, take, progress, before);
  return all;
}

}  // namespace rlx
