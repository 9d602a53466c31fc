#include "models/conversion/folder_writer.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/files/file_writer.h"
#include "base/names.h"
#include "formats/tensors/safetensors.h"
#include "models/conversion/folder_model.h"
#include "quant/block_format.h"
#include "text/tokenizer/files/tokenizer_files.h"

namespace rlx {
namespace {

std::int64_t value_count(const TensorView& tensor) {
  std::int64_t values = 1;
  for (std::int64_t size : tensor.shape) values *= size;  // the reader checked it
  return values;
}

/// The tensor's bytes in the type `to`.
std::vector<std::byte> encoded(const SourceTensor& tensor, const BlockFormat& to, std::string_view file) {
  const std::int64_t columns = tensor.view.shape.back();
  const std::int64_t count = value_count(tensor.view);
  std::vector<float> values(static_cast<std::size_t>(count)), written(values.size());
  if (count > 0) tensor.read_rows(0, count / columns, values.data());
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * to.bytes));
  to.encode(values.data(), nullptr, bytes.data(), count);
  to.decode(bytes.data(), written.data(), count);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i]) && !std::isfinite(written[i]))
      fail("{}: tensor {}: value {} is {}, which {} cannot hold", file, quote_name(tensor.view.name), i, values[i], to.name);
  return bytes;
}

/// What readers would take for a part of the model, such as another one's tokenizer.
void check_no_others(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& written) {
  constexpr std::string_view kinds[] = {".safetensors", ".json", ".jinja", ".model"};
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::filesystem::path& file = entry->path();
    if (std::ranges::count(kinds, file.extension().string()) > 0 && std::ranges::count(written, file) == 0)
      fail("{}: is there already and would belong to the model (remove it, or name another folder)", file.string());
  }
}

/// Tensors on their way to a file.
struct WeightsFile {
  WeightsFile(const std::filesystem::path& path, const std::vector<SourceTensor>& tensors, DType dtype)
      : tensors(tensors), writer(path, views_of(tensors, dtype), {{"format", "pt"}}) {}

  static std::vector<TensorView> views_of(const std::vector<SourceTensor>& tensors, DType dtype) {
    std::vector<TensorView> views;
    for (const SourceTensor& tensor : tensors)
      views.push_back({.name = tensor.view.name, .dtype = dtype, .shape = tensor.view.shape, .data = {}});
    return views;
  }

  const std::vector<SourceTensor>& tensors;
  SafetensorsWriter writer;
};

void write_weights(std::list<WeightsFile>& files, const BlockFormat& to, std::string_view source,
                   const std::function<void(std::size_t done, std::size_t total)>& progress) {
  std::size_t total = 0, done = 0;
  for (const WeightsFile& file : files)
    for (const SourceTensor& tensor : file.tensors) total += static_cast<std::size_t>(value_count(tensor.view));
  for (WeightsFile& file : files)
    for (std::size_t i : file.writer.order()) {
      file.writer.write(encoded(file.tensors[i], to, source));
      done += static_cast<std::size_t>(value_count(file.tensors[i].view));
      if (progress) progress(done, total);
    }
}

/// The text and weights of each module, by where they lie in the model's folder.
struct ModuleFiles {
  std::map<std::string, std::string> texts;
  std::map<std::string, const std::vector<SourceTensor>*> weights;

  explicit ModuleFiles(const std::vector<FolderModule>& modules) {
    if (modules.empty()) return;
    json::Value list = json::Value::array();
    const auto add = [&](const std::string& kind, const std::string& path) {
      const std::string number = std::to_string(list.size());
      list.push_back({{"idx", list.size()}, {"name", number}, {"path", path}, {"type", "sentence_transformers.models." + kind}});
    };
    add("Transformer", "");
    for (const FolderModule& module : modules) {
      const std::string path = fmt::format("{}_{}", list.size(), module.kind);
      add(module.kind, path);
      if (!module.config.is_null()) texts.emplace(path + "/config.json", module.config.dump(2) + "\n");
      if (!module.tensors.empty()) weights.emplace(path + "/model.safetensors", &module.tensors);
    }
    texts.emplace("modules.json", list.dump(2) + "\n");
  }
};

}  // namespace

std::vector<std::filesystem::path> write_model_folder(const GgufFile& file, const std::filesystem::path& folder, DType dtype,
                                                      const std::function<void(std::size_t done, std::size_t total)>& progress) {
  FolderModel model = FolderModel::of(file);
  model.config["torch_dtype"] = dtype == f16 ? "float16" : dtype == bf16 ? "bfloat16" : "float32";
  const ModuleFiles modules(model.modules);
  std::map<std::string, std::string> texts = tokenizer_files(file);
  texts.emplace("config.json", model.config.dump(2) + "\n");
  texts.insert(modules.texts.begin(), modules.texts.end());
  for (const auto& [name, config] : model.others) texts.emplace(name, config.dump(2) + "\n");
  std::map<std::string, const std::vector<SourceTensor>*> weights = modules.weights;
  weights.emplace("model.safetensors", &model.tensors);

  std::vector<std::filesystem::path> written;
  for (const auto& [name, tensors] : weights) written.push_back(folder / name);
  for (const auto& [name, text] : texts) written.push_back(folder / name);
  check_no_others(folder, written);
  const MadeFolder made(folder);  // before the writers, so that it goes after their temporary files
  std::list<MadeFolder> parts;
  for (const std::filesystem::path& path : written) parts.emplace_back(path.parent_path());
  std::vector<FileWriter> writers;
  for (const auto& [name, text] : texts) {
    writers.emplace_back(folder / name);
    writers.back().write(text);
    writers.back().finish();
  }
  std::list<WeightsFile> files;
  for (const auto& [name, tensors] : weights) files.emplace_back(folder / name, *tensors, dtype);
  write_weights(files, *find_block_format(safetensors_dtype_name(dtype)), file.name(), progress);
  for (WeightsFile& each : files) each.writer.commit();
  FileWriter::commit_all(writers);
  return written;
}

}  // namespace rlx
