#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/safetensors.h"

namespace rlx {

/// The weights of a model: one safetensors file, or all shards of a folder, read as one set of names.
class Checkpoint {
 public:
  /// `path` is a .safetensors file, an index (*.index.json), or a folder. In a folder the first of these counts:
  /// model.safetensors, model.safetensors.index.json, every *.safetensors in the order of their names.
  /// Throws Error when a name appears in two files, a shard lacks a tensor that the index promises, or the index points outside
  /// its folder.
  static Checkpoint open(const std::filesystem::path& path);

  const std::vector<SafetensorsFile>& files() const { return files_; }
  /// All names, file by file, each in the order of its header.
  std::vector<std::string_view> names() const;
  const TensorView* find(std::string_view tensor) const;
  /// Throws Error that lists near names when there is no such tensor.
  const TensorView& at(std::string_view tensor) const;
  /// The tensor as an Array that keeps its file mapped; copied only when its bytes are not aligned for the dtype.
  Array array(std::string_view tensor) const;

 private:
  using Place = std::pair<std::size_t, std::size_t>;  // file, tensor in it

  void index_names();
  const Place* place(std::string_view tensor) const;
  const TensorView& tensor_at(const Place& place) const { return files_[place.first].tensors()[place.second]; }

  std::string name_;
  std::vector<SafetensorsFile> files_;
  std::vector<Place> by_name_;  // sorted by the tensor's name
};

}  // namespace rlx
