#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
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
  std::filesystem::path weights;  // a safetensors file with linear.weight (out, in) and, perhaps, linear.bias (out); empty: the model's own
  std::int64_t in = 0, out = 0;
  bool bias = true;
  HiddenActivation activation = HiddenActivation::linear;
};

/// What GGUF files call the tensors of such layers, in their order.
inline constexpr std::array<std::string_view, 2> gguf_dense_names{"dense_2", "dense_3"};

/// Keys of ours, below the architecture's name: most tokens of a text, what is put before it, and whether vectors get length 1.
struct GgufEmbeddingKeys {
  std::string_view max_length = "embedding.max_length", prompt = "embedding.prompt", normalize = "embedding.normalize";
};
inline constexpr GgufEmbeddingKeys gguf_embedding_keys;

/// An encoder with what makes vectors of its states, and how long a text may be.
struct SentenceModelConfig {
  DecoderConfig encoder;
  std::optional<T5Config> t5;  // encodes in place of `encoder`, which has its sizes
  std::vector<Pooling> pooling;
  std::vector<SentenceDense> dense;
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
  std::int64_t width() const { return dense.empty() ? pooled_width() : dense.back().out; }
  std::int64_t pooled_width() const { return encoder.hidden_size * static_cast<std::int64_t>(pooling.size()); }

 private:
  void choose(const std::string& name, const SentenceChoices& choices);
};

/// Whether a GGUF file says how the states of tokens become one vector.
bool names_pooling(const GgufFile& file);
/// The class of torch.nn that a module Dense names for the activation. Throws Error where there is none.
std::string dense_activation_class(HiddenActivation activation);

/// Most tokens of a text by the configs of a folder: those of the positions, and what the configs of its tokenizer say.
std::int64_t longest_text(const std::filesystem::path& folder, const DecoderConfig& encoder);

}  // namespace rlx
