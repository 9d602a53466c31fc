#pragma once
#include <filesystem>
#include <string>

#include "models/weights/decoder_files.h"

namespace rlx {

/// A model that continues texts as a folder in Hugging Face's layout describes it, and as a GGUF file does.
struct ModelForms {
  DecoderConfig folder, gguf;
  WeightNames names_in_folder, names_in_gguf;

  /// `model`: of the folder or file at `path`. Throws Error naming it for a model that has no other form here.
  static ModelForms of(const std::filesystem::path& path, const DecoderFiles& model);
};

/// What general.architecture of the model's GGUF file is, or would be.
std::string architecture_of(const std::filesystem::path& path, const DecoderFiles& model);

}  // namespace rlx
