#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "formats/json.h"
#include "formats/tensor_view.h"

namespace rlx {

/// The tensors of one type in a model.
struct TypeShare {
  std::string type;  ///< as the file's format names it: "Q4_K", "BF16"
  std::int64_t tensors = 0, values = 0, bytes = 0;
};

/// The low-rank changes in an adapter.
struct AdapterShape {
  std::int64_t matrices = 0, least_rank = 0, largest_rank = 0;
};

/// What a model file or folder says of itself, for people.
struct ModelSummary {
  std::string format;                    ///< "GGUF version 3", "folder of safetensors files"
  std::string architecture, name;        ///< empty where the file does not say
  std::int64_t values = 0;               ///< of all tensors
  std::int64_t bytes = 0;                ///< of their data
  std::vector<TypeShare> types;          ///< the largest first
  json::Value hyper_parameters;          ///< what the architecture's own keys say: an object, without long lists
  json::Value tokenizer;                 ///< an object: model, tokens, and the ids of special tokens; empty where there is none
  std::int64_t chat_template_bytes = 0;  ///< 0: there is none

  std::optional<AdapterShape> adapter = {};  ///< nothing: it is a model

  double bits_per_weight() const { return values == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(values); }
};

ModelSummary summarize(const GgufFile& file);
/// A folder in the layout of Hugging Face, or with an adapter of PEFT's. Throws Error naming the file that is missing or wrong.
ModelSummary summarize_folder(const std::filesystem::path& folder);
/// The tensors of such a folder.
Checkpoint folder_tensors(const std::filesystem::path& folder);

/// The type of a tensor as its format names it.
std::string type_name(const TensorView& tensor);
std::vector<TypeShare> type_shares(std::span<const TensorView> tensors);

}  // namespace rlx
