#include "formats/program/weight_files.h"

#include "base/files/mapped_file.h"
#include "formats/program/container.h"
#include "rlx/io.h"

namespace rlx {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& program) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(program)).parent_path();
}

/// What a file is, asked once for all that it has.
class Files {
 public:
  struct Seen {
    std::int64_t bytes;
    std::string hash;
  };
  const Seen& of(const std::filesystem::path& file) {
    const auto [known, is_new] = seen_.try_emplace(file);
    if (is_new) {
      const MappedFile mapped = MappedFile::open(file);
      known->second = {std::ssize(mapped.bytes()), hash_text(content_hash(mapped.bytes()))};
    }
    return known->second;
  }

 private:
  std::map<std::filesystem::path, Seen> seen_;
};

}  // namespace

std::vector<WeightFile> weight_files(const std::filesystem::path& program, std::span<const ProgramFile::Source> sources) {
  Files files;
  std::vector<WeightFile> all;
  const std::filesystem::path folder = folder_of(program);
  for (const ProgramFile::Source& source : sources) {
    const auto& [bytes, hash] = files.of(source.file);
    const std::filesystem::path whole = std::filesystem::weakly_canonical(std::filesystem::absolute(source.file));
    const std::filesystem::path below = whole.lexically_relative(folder);
    const bool is_below = !below.empty() && *below.begin() != "..";
    all.push_back({source.name, (is_below ? below : whole).string(), source.tensor, bytes, hash});
  }
  return all;
}

std::map<std::string, Array> load_weights(const std::filesystem::path& program, std::span<const WeightFile> weights) {
  Files files;
  std::map<std::string, TensorFile> tensors;  // by path
  std::map<std::string, Array> values;
  const std::filesystem::path folder = folder_of(program);
  for (const WeightFile& weight : weights) {
    const std::filesystem::path file = folder / weight.file;
    const auto& [bytes, hash] = files.of(file);
    if (bytes != weight.bytes || hash != weight.hash)
      fail("{}: it has {} bytes with hash {} (allowed: {} bytes with hash {}, as when {} was written)", file.string(), bytes, hash,
           weight.bytes, weight.hash, program.string());
    if (weight.tensor.empty()) {
      values.insert_or_assign(weight.name, load_npy(file));
      continue;
    }
    const auto [known, is_new] = tensors.try_emplace(weight.file);
    if (is_new) known->second = load_safetensors(file);
    const auto tensor = known->second.arrays.find(weight.tensor);
    if (tensor == known->second.arrays.end()) fail("{}: there is no tensor '{}'", file.string(), weight.tensor);
    values.insert_or_assign(weight.name, tensor->second);
  }
  return values;
}

}  // namespace rlx
