#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "formats/gguf.h"

namespace rlx::command {

struct ModelView {
  bool json = false;
  bool all = false;      ///< long arrays and texts of the metadata as a whole
  bool tensors = false;  ///< one line a tensor
};

void inspect_gguf(const GgufFile& file, const ModelView& view);
/// A folder with config.json and safetensors files.
void inspect_folder(const std::filesystem::path& folder, const ModelView& view);

/// Text from outside: what would move the cursor is escaped.
std::string printable(std::string_view text);

}  // namespace rlx::command
