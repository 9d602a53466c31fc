#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/bert.h"
#include "models/pooling.h"

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

}  // namespace rlx
