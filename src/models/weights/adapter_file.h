#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "formats/gguf/gguf.h"
#include "rlx/array.h"

namespace rlx {

/// What an adapter adds to a matrix W (out, in) of a model: scale * b a (Hu et al. 2021).
struct LowRankChange {
  Array a;                 // (rank, in); of a table of embeddings, whose rows are looked up, (rows, rank)
  Array b;                 // (out, rank)
  double scale = 1;        // as the adapter was trained: alpha / rank, or alpha / sqrt(rank)
  bool embedding = false;  // of the rows that are looked up, not of a product with the same matrix

  // Of matrices that are stacked, as those of experts are, a and b have a first axis more: (experts, rank, in), (experts, out, rank).
  bool stacked() const { return a.rank() == 3; }
  std::int64_t rank() const { return b.shape().back(); }
};

/// Low-rank changes of a model's matrices that were trained apart from it (LoRA).
struct AdapterFile {
  std::string name;          // of the file, for messages
  std::string architecture;  // of a GGUF file general.architecture; empty: tensors are named as in a folder of Hugging Face
  std::map<std::string, LowRankChange> changes = {};  // by the name of the tensor that is changed: "model.layers.0.mlp.up_proj.weight"

  /// A folder as PEFT writes it (adapter_config.json, adapter_model.safetensors), or a GGUF file of type adapter. Arrays keep it mapped.
  /// Throws Error naming the file and the field or tensors for what is missing, malformed, or changes a model otherwise than so.
  static AdapterFile open(const std::filesystem::path& path);
  static AdapterFile of(const GgufFile& file);
};

/// True for a folder that holds an adapter and no model.
bool is_adapter_folder(const std::filesystem::path& path);
/// True for a GGUF file that says that it holds an adapter.
bool is_adapter(const GgufFile& file);

}  // namespace rlx
