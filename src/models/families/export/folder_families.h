#pragma once
#include <span>
#include <string_view>

#include "formats/gguf/gguf.h"
#include "models/config/decoder_config.h"

namespace rlx {

/// A model type of Hugging Face's configs, and the architecture of GGUF files that holds its models.
struct FolderFamily {
  using Fits = bool (*)(const GgufFile& file, const DecoderConfig& c);

  std::string_view model_type, architecture;
  std::string_view classes = "";  // what the names of its classes begin with; empty: files become folders of another type
  Fits fits = [](const GgufFile&, const DecoderConfig&) { return true; };  // of several types for an architecture the first that fits
};

/// The table of all; of several model types for an architecture, those come first that fit fewer files.
std::span<const FolderFamily> folder_families();

}  // namespace rlx
