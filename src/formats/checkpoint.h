#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/tensors/safetensors.h"

namespace rlx {

/// The weights of a model: a GGUF file, one safetensors file, or all shards of a folder, read as one set of names.
class Checkpoint {
 public:
  struct File {
    std::string name;
    std::span<const TensorView> tensors;
    std::shared_ptr<const void> owner;  ///< keeps the tensors and their bytes alive
  };

  /// `path` is a GGUF file (any part of a split one), a .safetensors file, an index (*.index.json), or a folder. In a folder the first of
  /// these counts: model.safetensors, model.safetensors.index.json, every *.safetensors in the order of their names.
  /// Throws Error when a name appears in two files, a shard lacks a tensor that the index promises, or the index points outside
  /// its folder.
  static Checkpoint open(const std::filesystem::path& path);
  /// The tensors of a GGUF file, under its names.
  static Checkpoint of(GgufFile file);
  /// Tensors from elsewhere. Throws Error as `open` does when a name appears twice.
  static Checkpoint of(std::string name, std::vector<File> files);

  const std::string& name() const { return name_; }
  /// A GGUF file counts as one, however many parts it has.
  std::span<const File> files() const { return files_; }
  /// The GGUF file that the tensors are of, or nullptr.
  const GgufFile* gguf() const { return gguf_ ? &*gguf_ : nullptr; }
  /// All names, file by file, each in the order of its header.
  std::vector<std::string_view> names() const;
  const TensorView* find(std::string_view tensor) const;
  /// Throws Error that lists near names when there is no such tensor.
  const TensorView& at(std::string_view tensor) const;
  /// What keeps the tensor's bytes alive.
  std::shared_ptr<const void> owner_of(std::string_view tensor) const;
  /// The tensor as an Array that keeps its file mapped; copied only when its bytes are not aligned for the dtype. Packed ones are decoded.
  Array array(std::string_view tensor) const;

 private:
  using Place = std::pair<std::size_t, std::size_t>;  // file, tensor in it

  void add(SafetensorsFile file);
  void index_names();
  const Place* place(std::string_view tensor) const;
  const TensorView& tensor_at(const Place& place) const { return files_[place.first].tensors[place.second]; }

  std::string name_;
  std::vector<File> files_;
  std::optional<GgufFile> gguf_;
  std::vector<Place> by_name_;  // sorted by the tensor's name
};

}  // namespace rlx
