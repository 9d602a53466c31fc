#include "rlx/sentence_encoder.h"

#include <algorithm>
#include <numeric>

#include "models/batching.h"
#include "models/model_folder.h"
#include "models/sentence_model.h"
#include "models/tokenizer/tokenizer.h"

namespace rlx {
namespace {

constexpr std::int64_t largest_batch = 4096;

/// Texts of one run as the graph's inputs, padded to the longest.
struct Batch {
  Array ids, mask, types;

  Batch(std::int64_t texts, std::int64_t length) : ids(i32, {texts, length}), mask(i32, {texts, length}), types(i32, {texts, length}) {}

  void set_row(std::size_t row, std::span<const std::int32_t> tokens) {
    const auto begin = static_cast<std::ptrdiff_t>(row) * ids.shape()[1];
    std::copy(tokens.begin(), tokens.end(), ids.mutable_values<std::int32_t>().begin() + begin);
    std::fill_n(mask.mutable_values<std::int32_t>().begin() + begin, tokens.size(), 1);
  }
};

}  // namespace

struct SentenceEncoder::State {
  SentenceModelConfig config;
  Tokenizer tokenizer;
  Executable executable;
  std::size_t batch_size;
};

namespace {

/// What a folder holds, and its graph for batches of that size.
struct OpenedModel {
  SentenceModelConfig config;
  Tokenizer tokenizer;
  Graph graph;
  NamedArrays weights;

  static OpenedModel open(const std::filesystem::path& folder, std::int64_t batch_size) {
    const ModelFolder model = ModelFolder::open(folder);
    SentenceModelConfig config = SentenceModelConfig::read(model);
    Tokenizer tokenizer = Tokenizer::open(folder / "tokenizer.json");
    tokenizer.set_padding(std::nullopt);
    tokenizer.set_truncation(Truncation{.max_length = static_cast<std::size_t>(config.max_length)});
    const Graph graph = sentence_graph(config, batch_size);
    NamedArrays weights = load_weights(graph, Checkpoint::open(folder), bert_weight_names());
    return {std::move(config), std::move(tokenizer), graph, std::move(weights)};
  }
};

}  // namespace

SentenceEncoder SentenceEncoder::open(const std::filesystem::path& folder, const Session& session, SentenceEncoderOptions options) {
  if (options.batch_size < 1 || options.batch_size > largest_batch) {
    fail("batch size {} is not possible (allowed: 1..{})", options.batch_size, largest_batch);
  }
  OpenedModel model = OpenedModel::open(folder, options.batch_size);
  Executable executable = session.compile(model.graph);
  executable.set_params(model.weights);
  const auto batch_size = static_cast<std::size_t>(options.batch_size);
  return SentenceEncoder(
      std::make_shared<State>(State{std::move(model.config), std::move(model.tokenizer), std::move(executable), batch_size}));
}

Calibration SentenceEncoder::calibrate(const std::filesystem::path& folder, const Session& session, std::span<const std::string> texts,
                                       const Progress& progress) {
  OpenedModel model = OpenedModel::open(folder, 1);
  Calibrator calibrator(session, model.graph);
  calibrator.executable().set_params(model.weights);
  const SentenceEncoder encoder(
      std::make_shared<State>(State{std::move(model.config), std::move(model.tokenizer), calibrator.executable(), 1}));
  for (std::size_t i = 0; i < texts.size(); ++i) {  // one by one, as padding would be noted, too
    const std::vector<std::int32_t> ids = encoder.token_ids(texts[i]);
    const std::span<const std::int32_t> alone(ids);
    calibrator.note(encoder.run({&alone, 1}));
    if (progress) progress(i + 1, texts.size());
  }
  return calibrator.calibration();
}

std::int64_t SentenceEncoder::width() const { return state_->config.width(); }

const Executable& SentenceEncoder::executable() const { return state_->executable; }

std::vector<std::int32_t> SentenceEncoder::token_ids(const std::string& text) const {
  std::vector<std::int32_t> ids = state_->tokenizer.encode(state_->config.prompt + text).ids;
  const std::int64_t rows = state_->config.bert.vocab_size;
  for (std::int32_t id : ids) {
    if (id >= rows) fail("tokenizer.json gives token {}, but the model's vocab_size is {}", id, rows);
  }
  if (ids.empty()) fail("tokenizer.json gives no tokens for a text of {} bytes, so there is nothing to embed", text.size());
  return ids;
}

Outputs SentenceEncoder::run(std::span<const std::span<const std::int32_t>> texts) const {
  std::size_t longest = 0;
  for (const auto& ids : texts) longest = std::max(longest, ids.size());
  Batch batch(static_cast<std::int64_t>(texts.size()), static_cast<std::int64_t>(longest));
  for (std::size_t i = 0; i < texts.size(); ++i) batch.set_row(i, texts[i]);
  return state_->executable.run({{"input_ids", batch.ids}, {"attention_mask", batch.mask}, {"token_type_ids", batch.types}});
}

void SentenceEncoder::run_batch(std::span<const std::size_t> rows, std::vector<Embedding>& embeddings) const {
  std::vector<std::span<const std::int32_t>> texts;
  for (std::size_t row : rows) texts.emplace_back(embeddings[row].ids);
  const Outputs outputs = run(texts);
  const auto values = outputs.at("embedding").values<float>();
  const auto width = static_cast<std::size_t>(this->width());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = values.subspan(i * width, width);
    embeddings[rows[i]].values.assign(row.begin(), row.end());
  }
}

std::vector<Embedding> SentenceEncoder::encode(std::span<const std::string> texts, const Progress& progress) const {
  std::vector<Embedding> embeddings(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) embeddings[i].ids = token_ids(texts[i]);
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Longest first: what memory there is to touch is touched at once, and the time that is left is never underestimated.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return embeddings[a].ids.size() > embeddings[b].ids.size(); });
  std::vector<std::size_t> lengths;
  for (std::size_t row : order) lengths.push_back(embeddings[row].ids.size());
  std::size_t begin = 0;
  for (std::size_t size : batch_sizes(lengths, state_->batch_size)) {
    run_batch(std::span(order).subspan(begin, size), embeddings);
    begin += size;
    if (progress) progress(begin, order.size());
  }
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
