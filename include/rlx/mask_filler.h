#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/session.h"

namespace rlx {

struct MaskFillerOptions {
  std::int64_t words = 5;       // of each mask, 1 to the size of the vocabulary
  std::int64_t batch_size = 8;  // most texts that run together, 1..4096; memory grows with it
};

/// What may stand in place of a mask.
struct MaskWord {
  std::int32_t token = 0;
  std::string text;       // the token alone, decoded
  float probability = 0;  // among all tokens of the vocabulary
};

/// Says the likeliest words of the masks in a text with a masked-language model: BERT, RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT or
/// ModernBERT. Copies share everything; all but `open` may be called from many threads at a time.
class MaskFiller {
 public:
  /// Reads a folder with config.json, a tokenizer and safetensors files. Throws Error naming the file and the field that is missing, wrong
  /// or not supported, and for a model that has no head for words, or whose tokenizer has no mask.
  static MaskFiller open(const std::filesystem::path& path, const Session& session, MaskFillerOptions options = {});

  /// How a mask is written in a text: "[MASK]" or "<mask>".
  const std::string& mask() const;
  /// For each text and each of its masks, in order, the likeliest words, the likeliest first. Texts that are longer than the model allows
  /// are cut. Throws Error for a text in which there is no mask.
  std::vector<std::vector<std::vector<MaskWord>>> fill(std::span<const std::string> texts) const;

 private:
  struct State;
  explicit MaskFiller(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace rlx
