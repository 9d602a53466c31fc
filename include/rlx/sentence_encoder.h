#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/array.h"
#include "rlx/calibrator.h"
#include "rlx/io.h"
#include "rlx/model.h"

namespace rlx {

/// One text as the model sees it and the vector it stands for.
struct Embedding {
  std::vector<std::int32_t> ids;  // of its tokens, special ones included
  std::vector<float> values;
};

/// The tokens of a text, or of a pair of texts.
struct TokenRow {
  std::span<const std::int32_t> ids;
  std::span<const std::int32_t> types = {};  // of each token, where tokens have types; empty: all 0
};

struct SentenceEncoderOptions {
  std::int64_t batch_size = 32;  // most texts that run together, 1..4096; memory grows with it
  // How the states of a text's tokens become one vector: cls, max, mean, mean_sqrt_len_tokens, weightedmean or lasttoken.
  std::string pooling = {};  // empty: as the model says
  // Whether vectors get the length 1. Nothing: as the model's modules.json says, and yes where there is none.
  std::optional<bool> normalize = std::nullopt;
  std::vector<Adapter> adapters = {};  // several add up
};

/// Embeds texts with an encoder: BERT, RoBERTa, XLM-RoBERTa, DistilBERT, nomic-bert, ModernBERT or the encoder of a T5. Copies share
/// everything; `encode` may be called from many threads at a time.
class SentenceEncoder {
 public:
  /// Reads a folder with config.json, a tokenizer and safetensors files, as sentence-transformers saves it (with modules.json) or plain, or
  /// a GGUF file; checks and compiles everything. Throws Error naming the file and the field that is missing, wrong or not supported, and
  /// for a model that does not say how it pools where the options do not, either.
  static SentenceEncoder open(const std::filesystem::path& path, const Session& session, SentenceEncoderOptions options = {});

  /// Called after each batch with the number of texts done so far; what it throws ends the work.
  using Progress = std::function<void(std::size_t done, std::size_t total)>;

  /// What a session of int8 needs to know of the model to compute with constant scales, from texts like those to come: a few hundred.
  /// `session` is one of f32; the texts run one by one. Throws Error as `open` and `encode`, and where there are no texts.
  static Calibration calibrate(const std::filesystem::path& path, const Session& session, std::span<const std::string> texts,
                               SentenceEncoderOptions options = {}, const Progress& progress = {});

  /// One embedding for each text, in order. Texts of like length share a batch, without padding but for ModernBERT and T5; a text longer
  /// than the model allows is cut. Texts are UTF-8; each part of one that is not counts as U+FFFD.
  std::vector<Embedding> encode(std::span<const std::string> texts, const Progress& progress = {}) const;

  /// What the encoder computes, with its weights, for other programs: input_ids, attention_mask (0 for padding on the right) and, where
  /// tokens have types, token_type_ids, all i32 (B, S) with B up to `options.batch_size` -> embedding, f32 (B, width). Throws Error as
  /// `open`.
  static SavedGraph saved(const std::filesystem::path& path, SentenceEncoderOptions options = {});

  /// The size of an embedding.
  std::int64_t width() const;
  /// The compiled model, with the inputs that `inputs` makes of texts -> embedding, f32 (texts, width).
  const Executable& executable() const;
  /// What one run reads of texts that are tokens already. Throws Error for no texts, more than a batch has, and for one without tokens,
  /// with more than the model allows, with a token that is not in the vocabulary, or with types that are not as many or unknown.
  std::map<std::string, Feed> inputs(std::span<const TokenRow> texts) const;

 private:
  struct State;
  explicit SentenceEncoder(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::vector<std::int32_t> token_ids(const std::string& text) const;

  std::shared_ptr<const State> state_;
};

/// All embeddings as one f32 array (count, width). Throws Error for one of another size.
Array embedding_matrix(std::span<const Embedding> embeddings, std::int64_t width);

}  // namespace rlx
