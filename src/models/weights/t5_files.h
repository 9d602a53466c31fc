#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/json/json.h"
#include "models/config/t5_config.h"
#include "models/families/weight_names.h"

namespace rlx {

class ModelFolder;

/// What a T5's folder in Hugging Face's layout, or its GGUF file, says. Weights stay in their mapped files.
struct T5Files {
  T5Config config;
  WeightNames names;
  Checkpoint checkpoint;
  std::vector<std::int32_t> end_tokens = {};  // any of them ends an answer

  static bool is_in(const GgufFile& file);
  static bool is_in(const ModelFolder& folder);
  /// Throws Error naming the file and the field or key for what is missing, malformed or not supported.
  static T5Files open(const std::filesystem::path& path);
  static T5Files of_gguf(Checkpoint checkpoint);
  static T5Files of_folder(const ModelFolder& folder);

  std::int64_t trained_context() const { return config.n_positions; }
  /// Those of the encoder alone, which has no use for the others.
  WeightNames encoder_names() const;
};

/// The T5 that a GGUF file holds.
T5Config read_gguf_t5(const GgufFile& file);
/// Names in T5 checkpoints: those of the parameters, and copies of the embeddings.
WeightNames t5_weight_names();
/// The same of a file: a head that it lacks has the weights of the embeddings, if these are tied, as transformers 5 also ties one that
/// scales nothing.
WeightNames t5_weight_names(const T5Config& config, const Checkpoint& checkpoint);
/// The names of its tensors there: those of the encoder's layers begin with enc.blk, of the decoder's with dec.blk.
WeightNames t5_gguf_names(const T5Config& config);
/// The keys that describe the model. Throws Error for an activation that GGUF files cannot say.
void describe_t5(const ModelFolder& folder, const T5Config& config, GgufMetadata& metadata);
/// The config.json of a T5's folder; `read_gguf_t5` has what it says, but for the ids of special tokens.
json::Value t5_folder_config(const T5Config& config);

}  // namespace rlx
