#include "models/api/model_summary.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "formats/gguf/gguf_json.h"
#include "models/config/model_chat_template.h"
#include "models/config/model_folder.h"
#include "models/weights/adapter_file.h"
#include "models/weights/quantized/folder_weights.h"
#include "quant/block_format.h"
#include "text/tokenizer/files/open_tokenizer.h"

namespace rlx {
namespace {

constexpr std::string_view token_id_ending = "_token_id";
constexpr std::size_t longest_list = 64;  // layers have lists of their own; vocabularies are no hyper-parameters

std::string text_or_empty(const GgufFile& file, std::string_view key) {
  const GgufValue* value = file.find_value(key);
  return value && value->type() == GgufType::string ? std::string(value->string()) : "";
}

void add_tensors(ModelSummary& summary, std::span<const TensorView> tensors) {
  summary.types = type_shares(tensors);
  for (const TypeShare& share : summary.types) {
    summary.values += share.values;
    summary.bytes += share.bytes;
  }
}

json::Value architecture_values(const GgufFile& file, const std::string& architecture) {
  json::Value out = json::Value::object();
  const std::string prefix = architecture + ".";
  for (const GgufValue& value : file.metadata())
    if (!architecture.empty() && value.key().starts_with(prefix) && value.size() <= longest_list)
      out[std::string(value.key().substr(prefix.size()))] = to_json(value);
  return out;
}

/// "tokenizer.ggml.bos_token_id" gives bos, with the id and the token's text.
json::Value tokenizer_of(const GgufFile& file) {
  constexpr std::string_view prefix = "tokenizer.ggml.";
  json::Value out = json::Value::object();
  const std::string model = text_or_empty(file, "tokenizer.ggml.model");
  if (model.empty()) return out;
  out["model"] = model;
  if (const std::string pre = text_or_empty(file, "tokenizer.ggml.pre"); !pre.empty()) out["pre"] = pre;
  const GgufValue* tokens = file.find_value("tokenizer.ggml.tokens");
  const auto texts = tokens ? tokens->strings() : std::vector<std::string_view>();
  out["tokens"] = texts.size();
  for (const GgufValue& value : file.metadata()) {
    if (!value.key().starts_with(prefix) || !value.key().ends_with(token_id_ending)) continue;
    const std::string_view role = value.key().substr(prefix.size(), value.key().size() - prefix.size() - token_id_ending.size());
    const auto id = static_cast<std::size_t>(value.integer());
    out[std::string(role)] = json::Value{{"id", id}, {"text", id < texts.size() ? std::string(texts[id]) : ""}};
  }
  return out;
}

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

json::Value tokenizer_in(const std::filesystem::path& folder) {
  json::Value out = json::Value::object();
  for (const char* name : tokenizer_file_names)
    if (out.empty() && is_file(folder / name)) out["model"] = name;
  return out;
}

AdapterShape shape_of(const AdapterFile& file) {
  AdapterShape shape{.matrices = 0, .least_rank = file.changes.begin()->second.rank()};
  for (const auto& [tensor, change] : file.changes) {
    shape.matrices += change.stacked() ? change.b.shape()[0] : 1;
    shape.least_rank = std::min(shape.least_rank, change.rank());
    shape.largest_rank = std::max(shape.largest_rank, change.rank());
  }
  return shape;
}

}  // namespace

std::string type_name(const TensorView& tensor) {
  if (tensor.format) return std::string(tensor.format->name);
  const std::string_view known = safetensors_dtype_name(tensor.dtype);
  return std::string(known.empty() ? name(tensor.dtype) : known);
}

std::vector<TypeShare> type_shares(std::span<const TensorView> tensors) {
  std::vector<TypeShare> shares;
  for (const TensorView& tensor : tensors) {
    const std::string type = type_name(tensor);
    auto share = std::find_if(shares.begin(), shares.end(), [&](const TypeShare& each) { return each.type == type; });
    if (share == shares.end()) share = shares.insert(shares.end(), {type, 0, 0, 0});
    ++share->tensors;
    std::int64_t values = 1;
    for (std::int64_t size : tensor.shape) values *= size;  // the reader checked it
    share->values += values;
    share->bytes += static_cast<std::int64_t>(byte_count(tensor));
  }
  std::stable_sort(shares.begin(), shares.end(), [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
  return shares;
}

ModelSummary summarize(const GgufFile& file) {
  ModelSummary summary;
  const std::size_t parts = file.part_names().size();
  summary.format = fmt::format("GGUF version {}{}{}", file.version(), file.is_big_endian() ? ", big-endian" : "",
                               parts > 1 ? fmt::format(", {} parts", parts) : "");
  summary.architecture = text_or_empty(file, "general.architecture");
  summary.name = text_or_empty(file, "general.name");
  summary.hyper_parameters = json_text(architecture_values(file, summary.architecture));
  summary.tokenizer = json_text(tokenizer_of(file));
  summary.chat_template_bytes = static_cast<std::int64_t>(text_or_empty(file, "tokenizer.chat_template").size());
  if (is_adapter(file)) summary.adapter = shape_of(AdapterFile::of(file));
  add_tensors(summary, file.tensors());
  return summary;
}

Checkpoint folder_tensors(const std::filesystem::path& folder) {
  if (is_adapter_folder(folder)) return Checkpoint::open(folder / "adapter_model.safetensors");
  return open_weights(ModelFolder::open(folder).path());  // which misses config.json first
}

ModelSummary summarize(const std::filesystem::path& folder, const Checkpoint& checkpoint) {
  ModelSummary summary;
  const bool adapter = is_adapter_folder(folder);
  if (adapter) summary.adapter = shape_of(AdapterFile::open(folder));
  else summary.architecture = ModelFolder::open(folder).model_type();
  const json::Value config = json::read_file(folder / (adapter ? "adapter_config.json" : "config.json"), {.allow_non_finite = true});
  summary.format = fmt::format("folder of {} safetensors file{}", checkpoint.files().size(), checkpoint.files().size() == 1 ? "" : "s");
  summary.name = std::filesystem::weakly_canonical(folder).filename().string();
  summary.hyper_parameters = json_text(config);
  summary.tokenizer = json_text(tokenizer_in(folder));
  const auto templates = chat_templates_in(folder);
  if (const auto chosen = templates.find("default"); chosen != templates.end())
    summary.chat_template_bytes = static_cast<std::int64_t>(chosen->second.size());
  std::vector<TensorView> tensors;
  for (const Checkpoint::File& file : checkpoint.files()) tensors.insert(tensors.end(), file.tensors.begin(), file.tensors.end());
  add_tensors(summary, tensors);
  return summary;
}

}  // namespace rlx
