#include "models/conversion/folder_writer.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

std::vector<std::filesystem::path> write_model_folder(const GgufFile& file, const std::filesystem::path& folder, DType dtype,
                                                      const std::function<void(std::size_t done, std::size_t total)>& progress) {
  FolderModel model = FolderModel::of(file);
  model.config["torch_dtype"] = dtype == f16 ? "float16" : dtype == bf16 ? "bfloat16" : "float32";
  std::map<std::string, std::string> texts = tokenizer_files(file);
  texts.emplace("config.json", model.config.dump(2) + "\n");

  std::vector<std::filesystem::path> written{folder / "model.safetensors"};
  for (const auto& [name, text] : texts) written.push_back(folder / name);
  check_no_others(folder, written);
  const MadeFolder made(folder);  // before the writers, so that it goes after their temporary files
  std::vector<FileWriter> writers;
  for (const auto& [name, text] : texts) {
    writers.emplace_back(folder / name);
    writers.back().write(text);
    writers.back().finish();
  }
  std::vector<TensorView> views;
  std::size_t total = 0, done = 0;
  for (const SourceTensor& tensor : model.tensors) {
    views.push_back({.name = tensor.view.name, .dtype = dtype, .shape = tensor.view.shape, .data = {}});
    total += static_cast<std::size_t>(value_count(tensor.view));
  }
  const BlockFormat& to = *find_block_format(safetensors_dtype_name(dtype));
  SafetensorsWriter weights(written.front(), views, {{"format", "pt"}});
  for (std::size_t i : weights.order()) {
    weights.write(encoded(model.tensors[i], to, file.name()));
    done += static_cast<std::size_t>(value_count(views[i]));
    if (progress) progress(done, total);
  }
  weights.commit();
  FileWriter::commit_all(writers);
  return written;
}

}  // namespace rlx
