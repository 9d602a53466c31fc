#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/array.h"

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
  std::string format;              ///< "GGUF version 3", "folder of 2 safetensors files"
  std::string architecture, name;  ///< empty where the file does not say
  std::int64_t values = 0;         ///< of all tensors
  std::int64_t bytes = 0;          ///< of their data
  std::vector<TypeShare> types;    ///< the largest first
  std::string hyper_parameters =
      "{}";                      ///< JSON: what the architecture's own keys say, an object without long lists; of a folder its config
  std::string tokenizer = "{}";  ///< JSON: an object with model, tokens, and the ids of special tokens; empty where there is none
  std::int64_t chat_template_bytes = 0;  ///< 0: there is none

  std::optional<AdapterShape> adapter = {};  ///< nothing: it is a model

  double bits_per_weight() const { return values == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(values); }
};

/// A tensor as its file describes it.
struct TensorEntry {
  std::string name, type;           ///< the type as the file's format names it: "Q4_K", "BF16"
  std::vector<std::int64_t> shape;  ///< the outermost first
  std::int64_t bytes = 0;
};

/// A key of a GGUF file's metadata.
struct MetadataEntry {
  std::string key, type;  ///< "u32", "string", "array"
  std::int64_t size = 1;  ///< elements of an array
  std::string value;      ///< JSON; NaN and infinities are null, and what is not UTF-8 counts as U+FFFD
};

/// A model or an adapter on disk, described without being run: a GGUF file (any part of a split one), or a folder in the layout of Hugging
/// Face or PEFT. Copies share it; any number of threads may use it. (Safetensors files, graphs and npy arrays: rlx/io.h.)
class ModelFile {
 public:
  /// Checks the whole file. Throws Error naming the file, the key or the tensor, and what is missing or wrong.
  static ModelFile open(const std::filesystem::path& path);
  /// A GGUF file that is not split, from bytes that must live as long as this and its copies; `name` stands for the file in messages.
  static ModelFile parse(std::span<const std::byte> bytes, std::string name);

  /// The path that was opened.
  const std::string& name() const;
  const ModelSummary& summary() const;
  /// All of them, in the order of the files.
  std::span<const TensorEntry> tensors() const;
  /// In the order of the file; empty for a folder, whose config is in the summary.
  std::vector<MetadataEntry> metadata() const;
  /// A tensor's values: without a copy where its type is plain, else decoded to f32. Throws Error that lists near names when there is no
  /// such tensor.
  Array array(std::string_view tensor) const;

 private:
  struct State;
  explicit ModelFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace rlx
