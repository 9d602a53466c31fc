#include "models/weights/decoder_files.h"

#include <cmath>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/config/end_tokens.h"
#include "models/config/model_folder.h"
#include "models/families/decoder_family.h"
#include "models/families/gguf/gguf_decoder.h"
#include "models/weights/model_forms.h"
#include "models/weights/param_changes.h"
#include "models/weights/quantized/folder_weights.h"

namespace rlx {
namespace {

[[noreturn]] void refuse_adapter(const std::filesystem::path& path) {
  fail("{}: is an adapter; name the model that it changes, and give it with --lora", path.string());
}

LanguageModelFiles open_gguf(const std::filesystem::path& path) {
  Checkpoint checkpoint = Checkpoint::open(path);
  if (checkpoint.gguf() == nullptr) fail("{}: neither a GGUF file nor a folder with a model's config.json", path.string());
  if (is_adapter(*checkpoint.gguf())) refuse_adapter(path);
  if (T5Files::is_in(*checkpoint.gguf())) return T5Files::of_gguf(std::move(checkpoint));
  DecoderConfig config = read_gguf_decoder(*checkpoint.gguf());
  WeightNames names = gguf_names(config, GgufLayout::of(*checkpoint.gguf(), config));
  auto end_tokens = end_tokens_of(*checkpoint.gguf());
  return DecoderFiles{std::move(config), std::move(names), std::move(checkpoint), std::move(end_tokens)};
}

void check_architecture(const AdapterFile& adapter, const std::filesystem::path& path, const DecoderFiles& model) {
  if (adapter.architecture.empty()) return;
  const std::string architecture = architecture_of(path, model);
  if (adapter.architecture != architecture)
    fail("{}: general.architecture is {}, the model's is {}", adapter.name, quote_name(adapter.architecture), quote_name(architecture));
}

LanguageModelFiles open_folder(const std::filesystem::path& path) {
  if (is_adapter_folder(path)) refuse_adapter(path);
  const ModelFolder folder = ModelFolder::open(path);
  if (T5Files::is_in(folder)) return T5Files::of_folder(folder);
  const DecoderFamily& family = family_of(folder);
  DecoderConfig config = family.read(folder.config());
  WeightNames names = family.weight_names(config);
  return DecoderFiles{std::move(config), std::move(names), open_weights(path), end_tokens_of(folder)};
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
    const std::vector<std::string_view> known = DecoderFamily::model_types();
    folder.check_model_type(fmt::format("{}", fmt::join(known, ", ")), near_hint(folder.model_type(), known));
    fail_internal("decoder: the family {} is listed and not found", folder.model_type());
  }
  return *family;
}

DecoderConfig read_description(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return DecoderFiles::open(path).config;
  const ModelFolder folder = ModelFolder::open(path);
  return family_of(folder).read(folder.config());
}

LanguageModelFiles open_language_model(const std::filesystem::path& path, std::span<const Adapter> adapters) {
  std::error_code error;
  LanguageModelFiles files = std::filesystem::is_regular_file(path, error) ? open_gguf(path) : open_folder(path);
  for (const Adapter& adapter : adapters) {
    if (!std::isfinite(adapter.scale)) fail("{}: scale {} (allowed: finite numbers)", adapter.path.string(), adapter.scale);
    auto* model = std::get_if<DecoderFiles>(&files);
    if (model == nullptr) refuse_encoder_decoder(path, "an adapter");
    AdapterFile file = AdapterFile::open(adapter.path);
    AdapterNames names = names_for(file, path, *model);
    model->adapters.add(std::move(file), adapter.scale, std::move(names));
  }
  return files;
}

void refuse_encoder_decoder(const std::filesystem::path& path, std::string_view what) {
  fail("{}: a model with an encoder and a decoder reads a prompt and answers it (rlx run): {} is not for it", path.string(), what);
}

void DecoderFiles::check_makes_text() const {
  if (!config.causal) fail("{}: this model is an encoder: it makes no text (rlx embed turns texts into vectors)", checkpoint.name());
}

Executable DecoderFiles::compile(const Session& session, const Graph& graph) const {
  const NamedArrays values = weights(graph, session.threads());  // before compiling, which takes longer: they may not fit
  Executable executable = session.compile(graph);
  executable.set_params(values);
  return executable;
}

LanguageModelFiles open_text_encoder(const std::filesystem::path& path, std::span<const Adapter> adapters) {
  LanguageModelFiles files = open_language_model(path, adapters);
  const auto* decoder = std::get_if<DecoderFiles>(&files);
  if (decoder != nullptr && decoder->config.causal)
    fail("{}: the model continues texts; one that encodes them is needed, such as BERT", path.string());
  return files;
}

DecoderFiles DecoderFiles::open(const std::filesystem::path& path, std::span<const Adapter> adapters) {
  LanguageModelFiles files = open_language_model(path, adapters);
  auto* decoder = std::get_if<DecoderFiles>(&files);
  if (decoder == nullptr) refuse_encoder_decoder(path, "this");
  return std::move(*decoder);
}

}  // namespace rlx
