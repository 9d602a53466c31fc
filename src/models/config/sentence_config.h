#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/gguf/gguf.h"
#include "models/config/decoder_config.h"
#include "models/config/pooling_config.h"
#include "models/config/t5_config.h"

namespace rlx {

/// What is chosen where a model does not say it, or in place of what it says.
struct SentenceChoices {
  std::vector<Pooling> pooling;   // empty: as the model says
  std::optional<bool> normalize;  // nothing: as the model says, and yes where it says nothing
};

/// A layer behind the pooling (the module Dense): x (B, in) -> activation(weight x + bias), (B, out).
struct SentenceDense {
  std::filesystem::path weights;  // a safetensors file with linear.weight (out, in) and, perhaps, linear.bias (out)
  std::int64_t out = 0;
  bool bias = true;
  std::optional<HiddenActivation> activation;
};

/// An encoder with what makes vectors of its states, and how long a text may be.
struct SentenceModelConfig {
  DecoderConfig encoder;
  std::optional<T5Config> t5;  // encodes in place of `encoder`, which has its sizes
  std::vector<Pooling> pooling;
  std::optional<SentenceDense> dense;
  bool normalize = true;
  std::int64_t max_length = 0;  // tokens, special ones included; longer texts are cut
  std::string prompt;           // put before every text

  /// Reads modules.json, the modules' own configs, sentence_bert_config.json and tokenizer_config.json of a folder. Throws Error naming
  /// file and field for what is missing, malformed, or not supported, and for a model that does not say how it pools where `choices` do
  /// not.
  static SentenceModelConfig read(const std::filesystem::path& folder, const DecoderConfig& encoder, const SentenceChoices& choices = {});
  /// The same from the metadata of a GGUF file.
  static SentenceModelConfig read(const GgufFile& file, const DecoderConfig& encoder, const SentenceChoices& choices = {});
  /// The size of an embedding.
  std::int64_t width() const { return dense ? dense->out : pooled_width(); }
  std::int64_t pooled_width() const { return encoder.hidden_size * static_cast<std::int64_t>(pooling.size()); }

 private:
  void choose(const std::string& name, const SentenceChoices& choices);
};

/// Most tokens of a text by the configs of a folder: those of the positions, and what the configs of its tokenizer say.
std::int64_t longest_text(const std::filesystem::path& folder, const DecoderConfig& encoder);

}  // namespace rlx
