#include "rlx/model_file.h"

#include <system_error>
#include <utility>

#include "formats/gguf/gguf_json.h"
#include "models/api/model_summary.h"

namespace rlx {

struct ModelFile::State {
  std::string name;
  ModelSummary summary;
  Checkpoint checkpoint;
  std::vector<TensorEntry> tensors;
};

namespace {

std::vector<TensorEntry> entries_of(const Checkpoint& checkpoint) {
  std::vector<TensorEntry> entries;
  for (const Checkpoint::File& file : checkpoint.files())
    for (const TensorView& tensor : file.tensors)
      entries.push_back({tensor.name, type_name(tensor), tensor.shape, static_cast<std::int64_t>(byte_count(tensor))});
  return entries;
}

}  // namespace

ModelFile ModelFile::open(const std::filesystem::path& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  const Checkpoint checkpoint = folder ? folder_tensors(path) : Checkpoint::of(GgufFile::open(path));
  const ModelSummary summary = folder ? summarize(path, checkpoint) : summarize(*checkpoint.gguf());
  return ModelFile(std::make_shared<const State>(State{path.string(), summary, checkpoint, entries_of(checkpoint)}));
}

ModelFile ModelFile::parse(std::span<const std::byte> bytes, std::string name) {
  const Checkpoint checkpoint = Checkpoint::of(GgufFile::parse(bytes, name));
  return ModelFile(
      std::make_shared<const State>(State{std::move(name), summarize(*checkpoint.gguf()), checkpoint, entries_of(checkpoint)}));
}

const std::string& ModelFile::name() const { return state_->name; }
const ModelSummary& ModelFile::summary() const { return state_->summary; }
std::span<const TensorEntry> ModelFile::tensors() const { return state_->tensors; }

std::vector<MetadataEntry> ModelFile::metadata() const {
  std::vector<MetadataEntry> entries;
  const GgufFile* file = state_->checkpoint.gguf();
  if (file == nullptr) return entries;
  for (const GgufValue& value : file->metadata())
    entries.push_back({std::string(value.key()), std::string(rlx::name(value.type())), static_cast<std::int64_t>(value.size()),
                       json_text(to_json(value))});
  return entries;
}

Array ModelFile::array(std::string_view tensor) const { return state_->checkpoint.array(tensor); }

}  // namespace rlx
