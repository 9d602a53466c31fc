#include "rlx/sentence_encoder.h"

#include "base/cpu_count.h"
#include "models/config/sentence_config.h"
#include "models/run/batches/text_batches.h"
#include "models/run/sentence_graph.h"
#include "models/weights/decoder_files.h"
#include "models/weights/sentence_dense.h"
#include "text/tokenizer/files/open_tokenizer.h"

namespace rlx {
struct SentenceEncoder::State {
  SentenceModelConfig config;
  Tokenizer tokenizer;
  Executable executable;
  std::size_t batch_size;
};

namespace {

/// An encoder's files.
struct EncoderFiles {
  DecoderFiles files;  // of a T5 those of its encoder, with its sizes
  std::optional<T5Config> t5;

  static EncoderFiles open(const std::filesystem::path& path, std::span<const Adapter> adapters) {
    LanguageModelFiles opened = open_text_encoder(path, adapters);
    if (auto* decoder = std::get_if<DecoderFiles>(&opened)) return {std::move(*decoder), std::nullopt};
    auto& t5 = std::get<T5Files>(opened);
    const T5Config& config = t5.config;
    DecoderConfig sizes;
    sizes.vocab_size = config.vocab_size, sizes.hidden_size = config.d_model, sizes.max_positions = config.n_positions;
    return {DecoderFiles{std::move(sizes), t5.encoder_names(), std::move(t5.checkpoint)}, config};
  }
};

/// What a model's files hold, and its graph for batches of that size.
struct OpenedModel {
  SentenceModelConfig config;
  Tokenizer tokenizer;
  Graph graph;
  NamedArrays weights;

  static OpenedModel open(const std::filesystem::path& path, const SentenceEncoderOptions& options, int threads, bool padded = false) {
    const auto [files, t5] = EncoderFiles::open(path, options.adapters);
    SentenceChoices choices{.pooling = {}, .normalize = options.normalize};
    if (!options.pooling.empty()) choices.pooling = {parse_pooling(options.pooling)};
    const GgufFile* file = files.checkpoint.gguf();
    SentenceModelConfig config =
        file ? SentenceModelConfig::read(*file, files.config, choices) : SentenceModelConfig::read(path, files.config, choices);
    config.t5 = t5;
    Tokenizer tokenizer = open_tokenizer(path);
    tokenizer.set_padding(std::nullopt);
    tokenizer.set_truncation(Truncation{.max_length = static_cast<std::size_t>(config.max_length)});
    const Graph graph =
        sentence_graph(config, options.batch_size, stored_types(files.checkpoint, files.names), files.adapters.forms(), padded);
    NamedArrays known = files.adapters.load(graph);
    known.merge(load_dense(config.dense));
    NamedArrays weights = load_weights(graph, files.checkpoint, files.names, threads, std::move(known));
    return {std::move(config), std::move(tokenizer), graph, std::move(weights)};
  }
};

void check_tokens(const SentenceModelConfig& config, const TokenRow& text, std::size_t number) {
  const auto check = [&](const char* what, std::span<const std::int32_t> values, std::int64_t count) {
    for (std::int32_t value : values)
      if (value < 0 || value >= count) fail("text {}: {} {} (allowed: 0..{})", number, what, value, count - 1);
  };
  if (text.ids.empty() || std::ssize(text.ids) > config.max_length)
    fail("text {} has {} tokens (allowed: 1..{})", number, text.ids.size(), config.max_length);
  check("token", text.ids, config.encoder.vocab_size);
  if (!text.types.empty() && text.types.size() != text.ids.size())
    fail("text {} has {} tokens, but types of {}", number, text.ids.size(), text.types.size());
  check("token type", text.types, std::max<std::int64_t>(config.encoder.token_types, 1));
}

}  // namespace

SentenceEncoder SentenceEncoder::open(const std::filesystem::path& path, const Session& session, SentenceEncoderOptions options) {
  check_batch_size(options.batch_size);
  OpenedModel model = OpenedModel::open(path, options, session.threads());
  Executable executable = session.compile(model.graph);
  executable.set_params(model.weights);
  const auto batch_size = static_cast<std::size_t>(options.batch_size);
  return SentenceEncoder(
      std::make_shared<State>(State{std::move(model.config), std::move(model.tokenizer), std::move(executable), batch_size}));
}

Calibration SentenceEncoder::calibrate(const std::filesystem::path& path, const Session& session, std::span<const std::string> texts,
                                       SentenceEncoderOptions options, const Progress& progress) {
  options.batch_size = 1;  // as padding would be noted, too
  OpenedModel model = OpenedModel::open(path, options, session.threads());
  Calibrator calibrator(session, model.graph);
  calibrator.executable().set_params(model.weights);
  const SentenceEncoder encoder(
      std::make_shared<State>(State{std::move(model.config), std::move(model.tokenizer), calibrator.executable(), 1}));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::vector<std::int32_t> ids = encoder.token_ids(texts[i]);
    const TokenRow alone{.ids = ids};
    calibrator.note(calibrator.executable().run(encoder.inputs({&alone, 1})));
    if (progress) progress(i + 1, texts.size());
  }
  return calibrator.calibration();
}

SavedGraph SentenceEncoder::saved(const std::filesystem::path& path, SentenceEncoderOptions options) {
  check_batch_size(options.batch_size);
  OpenedModel model = OpenedModel::open(path, options, granted_cpus(), true);
  return {std::move(model.graph), std::move(model.weights)};
}

std::int64_t SentenceEncoder::width() const { return state_->config.width(); }

const Executable& SentenceEncoder::executable() const { return state_->executable; }

std::map<std::string, Feed> SentenceEncoder::inputs(std::span<const TokenRow> texts) const {
  if (texts.empty() || texts.size() > state_->batch_size) fail("{} texts in one run (allowed: 1..{})", texts.size(), state_->batch_size);
  for (std::size_t i = 0; i < texts.size(); ++i) check_tokens(state_->config, texts[i], i);
  return text_inputs(text_form(state_->config), texts);
}

std::vector<std::int32_t> SentenceEncoder::token_ids(const std::string& text) const {
  std::vector<std::int32_t> ids = state_->tokenizer.encode(state_->config.prompt + text).ids;
  const std::int64_t rows = state_->config.encoder.vocab_size;
  for (std::int32_t id : ids) {
    if (id >= rows) fail("the tokenizer gives token {}, but the model's vocab_size is {}", id, rows);
  }
  if (ids.empty()) fail("the tokenizer gives no tokens for a text of {} bytes, so there is nothing to embed", text.size());
  return ids;
}

std::vector<Embedding> SentenceEncoder::encode(std::span<const std::string> texts, const Progress& progress) const {
  std::vector<Embedding> embeddings(texts.size());
  std::vector<TokenRow> rows;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    embeddings[i].ids = token_ids(texts[i]);
    rows.push_back({.ids = embeddings[i].ids});
  }
  const auto take = [&](std::size_t row, std::span<const float> values) { embeddings[row].values.assign(values.begin(), values.end()); };
  run_in_batches(state_->executable, text_form(state_->config), rows, state_->batch_size, "embedding", take, progress);
  return embeddings;
}

Array embedding_matrix(std::span<const Embedding> embeddings, std::int64_t width) {
  Array matrix(f32, {static_cast<std::int64_t>(embeddings.size()), width});
  auto out = matrix.mutable_values<float>().begin();
  for (const Embedding& embedding : embeddings) {
    if (embedding.values.size() != static_cast<std::size_t>(width))
      fail("an embedding has {} values (needed: {})", embedding.values.size(), width);
    out = std::copy(embedding.values.begin(), embedding.values.end(), out);
  }
  return matrix;
}

}  // namespace rlx
