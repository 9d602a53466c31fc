#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/gguf/gguf.h"
#include "formats/tensors/tensor_view.h"
#include "rlx/model_file.h"

namespace rlx {

ModelSummary summarize(const GgufFile& file);
/// A folder in the layout of Hugging Face, or with an adapter of PEFT's, with its tensors. Throws Error naming the file that is missing or
/// wrong.
ModelSummary summarize(const std::filesystem::path& folder, const Checkpoint& tensors);
/// The tensors of such a folder.
Checkpoint folder_tensors(const std::filesystem::path& folder);

/// The type of a tensor as its format names it.
std::string type_name(const TensorView& tensor);
std::vector<TypeShare> type_shares(std::span<const TensorView> tensors);

}  // namespace rlx
