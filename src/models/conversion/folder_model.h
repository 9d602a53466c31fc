#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/json/json.h"
#include "models/conversion/model_source.h"

namespace rlx {

/// The name of a folder's tensor with the prefix of its family, which stands before all but those of heads.
std::string prefixed(std::string_view prefix, std::string_view name);

/// The model of a GGUF file as a folder in Hugging Face's layout holds it: config.json, and tensors with the family's names and order of
/// rows, which are read from the file when they are needed.
struct FolderModel {
  json::Value config;
  std::vector<SourceTensor> tensors;

  /// Throws Error naming file, key or tensor for what has no form there.
  static FolderModel of(const GgufFile& file);
};

}  // namespace rlx
