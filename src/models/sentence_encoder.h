#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/bert.h"
#include "models/pooling.h"
#include "rlx/session.h"

namespace rlx {

class ModelFolder;

/// What a folder of sentence-transformers says: the modules behind the encoder, and how long a text may be.
struct SentenceModelConfig {
  BertConfig bert;
  std::vector<Pooling> pooling;
  bool normalize = false;
  std::int64_t max_length = 0;  // tokens, special ones included; longer texts are cut
  std::string prompt;           // put before every text

  /// Reads config.json, modules.json, sentence_bert_config.json and the modules' own configs. Throws Error naming file and field for
  /// what is missing, malformed, or not supported.
  static SentenceModelConfig read(const ModelFolder& folder);
  /// The size of an embedding.
  std::int64_t width() const { return bert.hidden_size * static_cast<std::int64_t>(pooling.size()); }
};

/// Encoder, pooling and normalisation as one graph: the inputs of TextInputs -> "embedding" (B, width).
Graph sentence_graph(const SentenceModelConfig& config, std::int64_t max_batch);

/// One text as the model sees it and the vector it stands for.
struct Embedding {
  std::vector<std::int32_t> ids;
  std::vector<float> values;
};

struct SentenceEncoderOptions {
  std::int64_t batch_size = 32;  // texts that run together, 1..4096; memory grows with it
};

/// Embeds texts with a folder as sentence-transformers saves it (BERT, WordPiece). Copies share everything; `encode` may be called from
/// many threads at a time.
class SentenceEncoder {
 public:
  /// Reads, checks and compiles everything. Throws Error naming the file and the field that is wrong.
  static SentenceEncoder open(const std::filesystem::path& folder, const Session& session, SentenceEncoderOptions options = {});

  /// Called after each batch with the number of texts done so far; what it throws ends `encode`.
  using Progress = std::function<void(std::size_t done, std::size_t total)>;

  /// One embedding for each text, in order. Texts of like length share a batch, padded to its longest.
  std::vector<Embedding> encode(std::span<const std::string> texts, const Progress& progress = {}) const;

  std::int64_t width() const;
  const Executable& executable() const;

 private:
  struct State;
  explicit SentenceEncoder(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::vector<std::int32_t> token_ids(const std::string& text) const;
  void run_batch(std::span<const std::size_t> rows, std::vector<Embedding>& embeddings) const;

  std::shared_ptr<const State> state_;
};

}  // namespace rlx
