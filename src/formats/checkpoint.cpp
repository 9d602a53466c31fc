#include "formats/checkpoint.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <system_error>
#include <tuple>

#include "base/names.h"
#include "formats/json/json.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;

/// Tensor name to the file that holds it; both as the index writes them.
using WeightMap = std::map<std::string, std::string>;

/// A shard lies beside its index: a separator or ".." could name any file of the machine.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

WeightMap read_weight_map(const fs::path& index) {
  const json::Value value = json::read_file(index);
  if (!value.is_object() || !value.contains("weight_map") || !value["weight_map"].is_object())
    fail("{}: an object 'weight_map' from tensor names to files is needed (a model's folder is named without a file)", index.string());
  WeightMap out;
  for (const auto& [tensor, file] : value["weight_map"].get_ref<const json::Value::object_t&>()) {
    const std::string what = fmt::format("{}: weight_map: tensor {}", index.string(), quote_name(tensor));
    if (!file.is_string()) fail("{}: file is {}, a string is needed", what, file.type_name());
    const auto& file_name = file.get_ref<const std::string&>();
    if (!is_plain_file_name(file_name)) fail("{}: {} is not the name of a file in this folder", what, quote_name(file_name));
    out.emplace(tensor, file_name);
  }
  if (out.empty()) fail("{}: weight_map is empty", index.string());
  return out;
}

std::vector<fs::path> safetensors_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".safetensors") out.push_back(entry->path());
  if (error) fail("{}: cannot list the folder: {}", folder.string(), error.message());
  if (out.empty()) fail("{}: no safetensors file in this folder (a GGUF file in one is named itself)", folder.string());
  std::sort(out.begin(), out.end());
  return out;
}

bool file_exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The index that `path` stands for, or an empty path.
fs::path index_of(const fs::path& path, bool is_folder) {
  if (!is_folder) return path.extension() == ".json" ? path : fs::path();
  const fs::path index = path / "model.safetensors.index.json";
  return !file_exists(path / "model.safetensors") && file_exists(index) ? index : fs::path();
}

std::vector<fs::path> files_of(const fs::path& path, bool is_folder) {
  if (!is_folder && path.extension() != ".safetensors" && file_exists(path))
    fail("{}: neither a GGUF file, a .safetensors file nor a folder with such files", path.string());
  if (!is_folder) return {path};
  if (file_exists(path / "model.safetensors")) return {path / "model.safetensors"};
  return safetensors_in(path);
}

std::vector<fs::path> shards_of(const WeightMap& weight_map, const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& [tensor, file] : weight_map) out.push_back(folder / file);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// By its first bytes; a file that tells nothing there is what its name says.
bool is_gguf(const fs::path& path) {
  if (path.extension() == ".gguf") return true;
  std::array<char, 4> front{};
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;  // a pipe would wait for who writes
  std::ifstream(path, std::ios::binary).read(front.data(), front.size());
  return looks_like_gguf(std::as_bytes(std::span(front)));
}

}  // namespace

void Checkpoint::add(SafetensorsFile file) {
  const auto owner = std::make_shared<const SafetensorsFile>(std::move(file));
  files_.push_back({owner->name(), owner->tensors(), owner});
}

Checkpoint Checkpoint::of(GgufFile file) {
  Checkpoint out;
  out.name_ = file.name();
  out.files_.push_back({file.name(), file.tensors(), file.owner()});
  out.gguf_ = std::move(file);
  out.index_names();
  return out;
}

Checkpoint Checkpoint::of(std::string name, std::vector<File> files) {
  Checkpoint out;
  out.name_ = std::move(name);
  out.files_ = std::move(files);
  out.index_names();
  return out;
}

Checkpoint Checkpoint::open(const fs::path& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (!is_folder && is_gguf(path)) return of(GgufFile::open(path));
  const fs::path index = index_of(path, is_folder);
  const WeightMap weight_map = index.empty() ? WeightMap() : read_weight_map(index);
  Checkpoint out;
  out.name_ = path.string();
  for (const fs::path& file : index.empty() ? files_of(path, is_folder) : shards_of(weight_map, index.parent_path()))
    out.add(SafetensorsFile::open(file));
  out.index_names();
  for (const auto& [tensor, file] : weight_map) {
    const Place* found = out.place(tensor);
    if (!found || fs::path(out.files_[found->first].name).filename() != file)
      fail("{}: weight_map: {} has no tensor {}", index.string(), quote_name(file), quote_name(tensor));
  }
  return out;
}

void Checkpoint::index_names() {
  for (std::size_t file = 0; file < files_.size(); ++file)
    for (std::size_t i = 0; i < files_[file].tensors.size(); ++i) by_name_.emplace_back(file, i);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](const Place& a, const Place& b) { return std::tie(tensor_at(a).name, a) < std::tie(tensor_at(b).name, b); });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(),
                                        [&](const Place& a, const Place& b) { return tensor_at(a).name == tensor_at(b).name; });
  if (twice != by_name_.end())
    fail("{}: tensor {} is also in {}", files_[twice[1].first].name, quote_name(tensor_at(*twice).name), files_[twice->first].name);
}

std::vector<std::string_view> Checkpoint::names() const {
  std::vector<std::string_view> out;
  for (const File& file : files_)
    for (const TensorView& tensor : file.tensors) out.push_back(tensor.name);
  return out;
}

const Checkpoint::Place* Checkpoint::place(std::string_view tensor) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), tensor,
                                      [&](const Place& place, std::string_view wanted) { return tensor_at(place).name < wanted; });
  return found != by_name_.end() && tensor_at(*found).name == tensor ? &*found : nullptr;
}

const TensorView* Checkpoint::find(std::string_view tensor) const {
  const Place* found = place(tensor);
  return found ? &tensor_at(*found) : nullptr;
}

const TensorView& Checkpoint::at(std::string_view tensor) const {
  if (const TensorView* found = find(tensor)) return *found;
  const auto known = names();
  fail("{}: no tensor {} among {}{}", name_, quote_name(tensor), known.size(), near_hint(tensor, known));
}

Array Checkpoint::array(std::string_view tensor) const {
  const TensorView& view = at(tensor);
  return to_array(view, owner_of(tensor));
}

std::shared_ptr<const void> Checkpoint::owner_of(std::string_view tensor) const {
  at(tensor);
  return files_[place(tensor)->first].owner;
}

}  // namespace rlx
