#include "models/decoder_files.h"

#include <cmath>
#include <limits>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/decoder_family.h"
#include "models/families/gguf.h"
#include "models/model_folder.h"
#include "models/model_forms.h"
#include "models/param_changes.h"
#include "models/quantised/folder_weights.h"

namespace rlx {
namespace {

/// One id, or a list of them.
std::vector<std::int32_t> read_end_tokens(const JsonField& config) {
  const auto field = config.find("eos_token_id");
  std::vector<std::int32_t> ids;
  if (field && field->value().is_array()) {
    for (const JsonField& item : field->items()) ids.push_back(item.as_id());
  } else if (field) {
    ids.push_back(field->as_id());
  }
  return ids;
}

/// generation_config.json knows better than config.json, where there is one.
std::vector<std::int32_t> folder_end_tokens(const ModelFolder& folder) {
  const std::filesystem::path own = folder.path() / "generation_config.json";
  std::error_code error;
  if (std::filesystem::exists(own, error)) {
    auto ids = read_end_tokens(ConfigFile::open(own).root());
    if (!ids.empty()) return ids;
  }
  return read_end_tokens(folder.config());
}

std::vector<std::int32_t> gguf_end_tokens(const GgufFile& file) {
  std::vector<std::int32_t> ids;
  for (std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const GgufValue* value = file.find_value(key))
      ids.push_back(static_cast<std::int32_t>(value->integer(0, std::numeric_limits<std::int32_t>::max())));
  return ids;
}

[[noreturn]] void refuse_adapter(const std::filesystem::path& path) {
  fail("{}: is an adapter; name the model that it changes, and give it with --lora", path.string());
}

DecoderFiles open_gguf(const std::filesystem::path& path) {
  Checkpoint checkpoint = Checkpoint::open(path);
  if (checkpoint.gguf() == nullptr) fail("{}: no GGUF file and no folder with a model's config.json", path.string());
  if (is_adapter(*checkpoint.gguf())) refuse_adapter(path);
  DecoderConfig config = read_gguf_decoder(*checkpoint.gguf());
  WeightNames names = gguf_names(config, GgufLayout::of(*checkpoint.gguf(), config));
  auto end_tokens = gguf_end_tokens(*checkpoint.gguf());
  return {std::move(config), std::move(names), std::move(checkpoint), std::move(end_tokens)};
}

void check_architecture(const AdapterFile& adapter, const std::filesystem::path& path, const DecoderFiles& model) {
  if (adapter.architecture.empty()) return;
  const std::string architecture = architecture_of(path, model);
  if (adapter.architecture != architecture)
    fail("{}: general.architecture is {}, the model's is {}", adapter.name, quote_name(adapter.architecture), quote_name(architecture));
}

DecoderFiles open_folder(const std::filesystem::path& path) {
  if (is_adapter_folder(path)) refuse_adapter(path);
  const ModelFolder folder = ModelFolder::open(path);
  const DecoderFamily& family = family_of(folder);
  DecoderConfig config = family.read(folder.config());
  WeightNames names = family.weight_names(config);
  return {std::move(config), std::move(names), open_weights(path), folder_end_tokens(folder)};
}

/// An adapter in a folder changes the folder that a model in a GGUF file is made of, and one in a GGUF file such a file of the folder.
AdapterNames names_for(const AdapterFile& adapter, const std::filesystem::path& path, const DecoderFiles& model) {
  check_architecture(adapter, path, model);
  const bool in_file = model.checkpoint.gguf() != nullptr, for_file = !adapter.architecture.empty();
  if (in_file == for_file) return {model.names};
  const ModelForms forms = ModelForms::of(path, model);
  return for_file ? AdapterNames{forms.names_in_gguf, changes_between(forms.gguf, forms.folder)}
                  : AdapterNames{forms.names_in_folder, changes_between(forms.folder, forms.gguf)};
}

}  // namespace

const DecoderFamily& family_of(const ModelFolder& folder) {
  const DecoderFamily* family = DecoderFamily::find(folder.model_type());
  if (family == nullptr) {
    folder.check_model_type(fmt::format("{}", fmt::join(DecoderFamily::model_types(), ", ")));
    fail_internal("decoder: the family {} is listed and not found", folder.model_type());
  }
  return *family;
}

DecoderFiles DecoderFiles::open_encoder(const std::filesystem::path& path) {
  DecoderFiles files = open(path);
  if (files.config.causal) fail("{}: the model continues texts; one that encodes them is needed, such as BERT", path.string());
  return files;
}

DecoderFiles DecoderFiles::open(const std::filesystem::path& path, std::span<const Adapter> adapters) {
  std::error_code error;
  DecoderFiles files = std::filesystem::is_regular_file(path, error) ? open_gguf(path) : open_folder(path);
  for (const Adapter& adapter : adapters) {
    if (!std::isfinite(adapter.scale)) fail("{}: scale {} (allowed: finite numbers)", adapter.path.string(), adapter.scale);
    AdapterFile file = AdapterFile::open(adapter.path);
    AdapterNames names = names_for(file, path, files);
    files.adapters.add(std::move(file), adapter.scale, std::move(names));
  }
  return files;
}

}  // namespace rlx
