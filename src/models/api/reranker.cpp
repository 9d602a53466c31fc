#include "rlx/reranker.h"

#include <algorithm>
#include <cmath>

#include "base/names.h"
#include "models/config/model_folder.h"
#include "models/config/sentence_config.h"
#include "models/run/batches/text_batches.h"
#include "models/run/sentence_graph.h"
#include "models/weights/decoder_files.h"
#include "text/tokenizer/files/open_tokenizer.h"

namespace rlx {

struct Reranker::State {
  DecoderConfig encoder;
  Tokenizer tokenizer;
  Executable executable;
  std::size_t batch_size;
  bool sigmoid;

  Encoding tokens(const std::string& query, const std::string& text) const;
};

namespace {

/// Configs name the class of what follows the scores: sentence_transformers.activation_fn, or sbert_ce_default_activation_function in older
/// ones, such as "torch.nn.modules.linear.Identity".
bool config_says_sigmoid(const JsonField& config) {
  auto field = config.find("sbert_ce_default_activation_function");
  if (const auto newer = config.find("sentence_transformers"))
    if (const auto own = newer->find("activation_fn")) field = own;
  if (!field) return true;
  const std::string name = field->as_string();
  const std::string kind = name.substr(name.rfind('.') + 1);
  if (kind != "Sigmoid" && kind != "Identity") field->refuse("{} is not supported (allowed: Sigmoid, Identity)", quote_name(kind));
  return kind == "Sigmoid";
}

void check_scores(const DecoderConfig& encoder, const std::filesystem::path& path) {
  const std::int64_t labels = encoder.text_head.labels;
  if (labels == 0 || encoder.text_head.each_token)
    fail("{}: the model scores no texts (needed: one for sequence classification, such as BertForSequenceClassification)", path.string());
  if (labels > 1)
    fail("{}: the model has {} labels, which do not put texts in an order (allowed: 1; a classifier gives labels)", path.string(), labels);
}

}  // namespace

Encoding Reranker::State::tokens(const std::string& query, const std::string& text) const {
  Encoding pair = tokenizer.encode_pair(query, text);
  check_tokens(encoder, pair);
  if (pair.ids.empty()) fail("the tokenizer gives no tokens for a query and a text, so there is nothing to score");
  return pair;
}

Reranker Reranker::open(const std::filesystem::path& path, const Session& session, RerankerOptions options) {
  check_batch_size(options.batch_size);
  const LanguageModelFiles opened = open_text_encoder(path, options.adapters);
  const auto* encoder = std::get_if<DecoderFiles>(&opened);
  if (encoder == nullptr) refuse_encoder_decoder(path, "scoring texts");
  const DecoderFiles& files = *encoder;
  check_scores(files.config, path);
  const bool folder = files.checkpoint.gguf() == nullptr;
  const std::int64_t length = folder ? longest_text(path, files.config) : files.config.max_positions;
  const bool sigmoid = options.sigmoid.value_or(folder ? config_says_sigmoid(ModelFolder::open(path).config()) : true);
  Tokenizer tokenizer = open_tokenizer(path);
  tokenizer.set_padding(std::nullopt);
  tokenizer.set_truncation(Truncation{.max_length = static_cast<std::size_t>(length)});
  const Graph graph = score_graph("reranker", files, options.batch_size, length);
  Executable executable = files.compile(session, graph);
  const auto batch_size = static_cast<std::size_t>(options.batch_size);
  return Reranker(std::make_shared<State>(State{files.config, std::move(tokenizer), std::move(executable), batch_size, sigmoid}));
}

std::vector<float> Reranker::score(const std::string& query, std::span<const std::string> texts, const Progress& progress) const {
  std::vector<Encoding> pairs;
  for (const std::string& text : texts) pairs.push_back(state_->tokens(query, text));
  std::vector<TokenRow> rows;
  for (const Encoding& pair : pairs) rows.push_back({.ids = pair.ids, .types = pair.type_ids});
  std::vector<float> scores(texts.size());
  const auto take = [&](std::size_t row, std::span<const float> values) {
    if (std::isnan(values[0])) fail("the model's score of {} is no number", quote_name(texts[row]));
    scores[row] = state_->sigmoid ? 1 / (1 + std::exp(-values[0])) : values[0];
  };
  run_in_batches(state_->executable, text_form(state_->encoder), rows, state_->batch_size, "scores", take, progress);
  return scores;
}

std::vector<RankedText> Reranker::rank(const std::string& query, std::span<const std::string> texts, const Progress& progress) const {
  std::vector<RankedText> ranked;
  for (float score : score(query, texts, progress)) ranked.push_back({ranked.size(), score});
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedText& a, const RankedText& b) { return a.score > b.score; });
  return ranked;
}

}  // namespace rlx
