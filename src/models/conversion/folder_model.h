#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/json/json.h"
#include "models/conversion/model_source.h"

namespace rlx {

/// The name of a folder's tensor with the prefix of its family, which stands before all but those of heads.
std::string prefixed(std::string_view prefix, std::string_view name);

/// What follows the encoder of a sentence model, in a folder of its own within the model's.
struct FolderModule {
  std::string kind;                        // of sentence-transformers' classes
  json::Value config = {};                 // null: it has none
  std::vector<SourceTensor> tensors = {};  // of its own model.safetensors
};

/// The model of a GGUF file as a folder in Hugging Face's layout holds it: config.json, and tensors with the family's names and order of
/// rows, which are read from the file when they are needed.
struct FolderModel {
  json::Value config;
  std::vector<SourceTensor> tensors;
  std::vector<FolderModule> modules = {};          // empty where the file does not say how the states of tokens become one vector
  std::map<std::string, json::Value> others = {};  // configs of sentence-transformers, by the names of their files

  /// Throws Error naming file, key or tensor for what has no form there.
  static FolderModel of(const GgufFile& file);
};

}  // namespace rlx
