#include "models/folder_writer.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/file_writer.h"
#include "base/names.h"
#include "formats/safetensors.h"
#include "models/families/gguf.h"
#include "models/families/gguf_encoder.h"
#include "models/folder_config.h"
#include "models/gguf_config.h"
#include "models/tensor_names.h"
#include "models/tokenizer/tokenizer_files.h"
#include "quant/format.h"

namespace rlx {
namespace {

/// A tensor of the folder, and how it is made of one of the file.
struct FolderTensor {
  TensorView view;  // as it will be, without data
  const TensorView* from;
  std::int64_t first_row = 0;  // of an expert's rows among all
  std::int64_t head_size = 0;  // halves of a head that turn together are neighbours in the file; 0: they are not
  bool transposed = false, minus_one = false, log_of_negated = false;
};

/// Where the file has a row whose halves of a head are apart in the folder.
std::int64_t neighbour_row(std::int64_t row, std::int64_t head_size) {
  const std::int64_t head = row / head_size, at = row % head_size, half = head_size / 2;
  return head * head_size + at % half * 2 + at / half;
}

std::int64_t values_of_shape(const std::vector<std::int64_t>& shape) {
  std::int64_t values = 1;
  for (std::int64_t size : shape) values *= size;  // the reader checked it
  return values;
}

class FolderTensors {
 public:
  FolderTensors(const GgufFile& file, const DecoderConfig& model, const FolderConfig& config)
      : file_(file), model_(model), config_(config), gguf_(gguf_names(file, model)) {
    const std::string_view architecture = file.value("general.architecture").string();
    neighbours_turn_ = gguf_family(config.json.at("model_type").get<std::string>()).neighbours_turn;
    for (const TensorView& tensor : file.tensors()) add(tensor);
    if (!unknown_.empty())
      fail("{}: folders of {} have no place for {} tensors: {}", file.name(), architecture, unknown_.size(), some_names(unknown_));
  }

  const std::vector<FolderTensor>& all() const { return tensors_; }

 private:
  void add(const TensorView& tensor) {
    const auto parsed = parse_tensor_name(tensor.name, gguf_);
    if (!parsed && is_unused_tensor(tensor.name, gguf_)) return;
    const bool decay = parsed && parsed->params.front() == "state_space.decay";  // folders hold its logarithm
    TensorName wanted = parsed.value_or(TensorName());
    if (decay) wanted.params = {"state_space.log_decay"};
    const auto name = parsed ? spell_tensor_name(wanted, config_.names) : std::nullopt;
    if (!name) return unknown_.push_back(tensor.name);
    FolderTensor out{.view = {prefixed(*name), f32, tensor.shape, {}}, .from = &tensor};
    const std::string_view param = parsed->params.front();
    const bool turns = param == "attention.q" || param == "attention.k";
    if (turns && neighbours_turn_) out.head_size = model_.head_size;
    out.minus_one = config_.model.norm.plus_one && param.ends_with("norm");
    out.transposed = is_transposed(*parsed) && parsed->ending == ".weight";
    out.log_of_negated = decay;
    if (param == "state_space.convolution" && tensor.shape.size() == 2) out.view.shape.insert(out.view.shape.begin() + 1, 1);
    if (out.transposed) std::reverse(out.view.shape.begin(), out.view.shape.end());
    if (name->find("{e}") == std::string::npos) tensors_.push_back(std::move(out));
    else add_experts(std::move(out));
  }

  void add_experts(FolderTensor all) {
    if (all.view.shape.size() != 3)
      fail("{}: tensor {}: {} axes (allowed: 3)", file_.name(), quote_name(all.from->name), all.view.shape.size());
    const std::int64_t experts = all.view.shape[0], rows = all.view.shape[1];
    const std::string name = all.view.name;
    all.view.shape.erase(all.view.shape.begin());
    for (std::int64_t e = 0; e < experts; ++e) {
      FolderTensor one = all;
      one.view.name.replace(name.find("{e}"), 3, std::to_string(e));
      one.first_row = e * rows;
      tensors_.push_back(std::move(one));
    }
  }

  bool is_transposed(const TensorName& parsed) const {
    const auto& table = parsed.layer >= 0 ? config_.names.layer : config_.names.whole;
    const auto line = std::find_if(table.rbegin(), table.rend(), [&](const WeightName& each) { return each.params == parsed.params; });
    return line != table.rend() && line->transposed;
  }

  std::string prefixed(const std::string& name) const {
    const bool head = std::any_of(std::begin(heads), std::end(heads), [&](std::string_view part) { return name.starts_with(part); });
    return head ? name : config_.prefix + name;
  }

  static constexpr std::string_view heads[] = {"lm_head", "classifier", "pre_classifier", "head."};

  const GgufFile& file_;
  const DecoderConfig& model_;
  const FolderConfig& config_;
  WeightNames gguf_;
  bool neighbours_turn_ = false;
  std::vector<FolderTensor> tensors_;
  std::vector<std::string> unknown_;
};

/// The tensor's values in f32, in the order of the folder.
std::vector<float> folder_values(const FolderTensor& tensor) {
  const TensorView& from = *tensor.from;
  const bool vector = from.shape.size() == 1;
  const std::int64_t columns = vector ? 1 : from.shape.back();
  const std::int64_t rows = values_of_shape(tensor.view.shape) / std::max<std::int64_t>(columns, 1);
  const BlockFormat& format = *from.format;
  std::vector<float> stored(static_cast<std::size_t>(rows * columns));
  format.decode(from.data.data() + tensor.first_row * columns / format.values * format.bytes, stored.data(), rows * columns);
  if (tensor.log_of_negated) std::ranges::for_each(stored, [](float& value) { value = std::log(-value); });
  if (tensor.minus_one) std::ranges::for_each(stored, [](float& value) { value -= 1; });
  if (tensor.head_size == 0 && !tensor.transposed) return stored;
  std::vector<float> values(stored.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t source = tensor.head_size > 0 ? neighbour_row(row, tensor.head_size) : row;
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t to = tensor.transposed ? column * rows + row : row * columns + column;
      values[static_cast<std::size_t>(to)] = stored[static_cast<std::size_t>(source * columns + column)];
    }
  }
  return values;
}

std::vector<std::byte> encoded(const FolderTensor& tensor, const BlockFormat& to, std::string_view file) {
  const std::vector<float> values = folder_values(tensor);
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * to.bytes));
  std::vector<float> written(values.size());
  to.encode(values.data(), nullptr, bytes.data(), count);
  to.decode(bytes.data(), written.data(), count);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i]) && !std::isfinite(written[i]))
      fail("{}: tensor {}: value {} is {}, which {} cannot hold", file, quote_name(tensor.from->name), i, values[i], to.name);
  return bytes;
}

/// Removes a folder that it made itself, unless something is in it.
class MadeFolder {
 public:
  explicit MadeFolder(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    made_ = std::filesystem::create_directory(path, error);
    if (error || !std::filesystem::is_directory(path)) fail("{}: the folder cannot be made: {}", path.string(), error.message());
  }
  ~MadeFolder() {
    std::error_code error;
    if (made_) std::filesystem::remove(path_, error);
  }
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

 private:
  std::filesystem::path path_;
  bool made_ = false;
};

}  // namespace

void write_model_folder(const GgufFile& file, const std::filesystem::path& folder, DType dtype,
                        const std::function<void(std::size_t done, std::size_t total)>& progress) {
  const DecoderConfig model = read_gguf_decoder(file);
  FolderConfig config = FolderConfig::of(file, model);
  config.json["torch_dtype"] = dtype == f16 ? "float16" : dtype == bf16 ? "bfloat16" : "float32";
  const FolderTensors tensors(file, model, config);
  std::map<std::string, std::string> texts = tokenizer_files(file);
  texts.emplace("config.json", config.json.dump(2) + "\n");

  const MadeFolder made(folder);  // before the writers, so that it goes after their temporary files
  std::vector<FileWriter> writers;
  for (const auto& [name, text] : texts) {
    writers.emplace_back(folder / name);
    writers.back().write(text);
    writers.back().finish();
  }
  std::vector<TensorView> views;
  std::size_t total = 0, done = 0;
  for (const FolderTensor& tensor : tensors.all()) {
    views.push_back(tensor.view);
    views.back().dtype = dtype;
    total += static_cast<std::size_t>(values_of_shape(tensor.view.shape));
  }
  const BlockFormat& to = *find_block_format(safetensors_dtype_name(dtype));
  SafetensorsWriter weights(folder / "model.safetensors", views, {{"format", "pt"}});
  for (std::size_t i : weights.order()) {
    weights.write(encoded(tensors.all()[i], to, file.name()));
    done += static_cast<std::size_t>(values_of_shape(views[i].shape));
    if (progress) progress(done, total);
  }
  weights.commit();
  FileWriter::commit_all(writers);
}

}  // namespace rlx
