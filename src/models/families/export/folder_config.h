#pragma once
#include <string>
#include <string_view>

#include "formats/gguf/gguf.h"
#include "formats/json/json.h"
#include "models/config/decoder_config.h"
#include "models/families/weight_names.h"

namespace rlx {

/// The architecture of GGUF files that holds models of that type of Hugging Face's configs, which continue texts or, of an encoder's type,
/// read them. Throws Error that lists those that are known.
std::string_view gguf_architecture(std::string_view model_type, bool causal = true);

/// The ids of the special tokens that config.json names; null for those that the file does not.
void write_token_ids(const GgufFile& file, json::Value& out);

/// The model of a GGUF file as config.json of a folder in Hugging Face's layout says it.
struct FolderConfig {
  json::Value json;
  DecoderConfig model;  // as the family reads that config
  WeightNames names;    // of the family's tensors
  std::string prefix;   // before all names but those of heads

  /// `model`: as read_gguf_decoder gives it. Throws Error naming the file for an architecture whose folders are not known, and for what no
  /// config of the family says: the config is read back and must describe the same graph.
  static FolderConfig of(const GgufFile& file, const DecoderConfig& model);
};

}  // namespace rlx
