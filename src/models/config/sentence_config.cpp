#include "models/config/sentence_config.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/names.h"
#include "models/config/config_field.h"
#include "models/config/model_folder.h"

namespace rlx {
namespace {

/// "sentence_transformers.models.Pooling" -> "Pooling"
std::string last_part(const std::string& dotted) { return dotted.substr(dotted.rfind('.') + 1); }

/// The module's own config, which must lie inside the model's folder.
ConfigFile module_config(const std::filesystem::path& folder, const JsonField& module) {
  const std::filesystem::path path = std::filesystem::path(module.at("path").as_string()).lexically_normal();
  if (path.is_absolute() || (!path.empty() && *path.begin() == "..")) {
    module.at("path").refuse("{} is outside the model's folder", quote_name(path.string()));
  }
  return ConfigFile::open(folder / path / "config.json");
}

/// Pooling without the tokens of the prompt would need their number.
void refuse_hidden_prompt(const JsonField& pooling, const std::string& prompt) {
  auto included = pooling.find("include_prompt");
  if (included && !included->as_bool() && !prompt.empty()) included->refuse("false is not supported with a default prompt (allowed: true)");
}

/// Nothing for the identity.
std::optional<HiddenActivation> dense_activation(const JsonField& config) {
  const auto field = config.find("activation_function");
  if (!field) return HiddenActivation::tanh;  // the module's own default
  const std::string name = last_part(field->as_string());
  if (name == "Identity") return std::nullopt;
  if (name == "Tanh") return HiddenActivation::tanh;
  if (name == "GELU") return HiddenActivation::gelu;
  if (name == "ReLU") return HiddenActivation::relu;
  field->refuse("{} is not supported (allowed: Identity, Tanh, GELU, ReLU)", quote_name(name));
}

SentenceDense read_dense(const std::filesystem::path& folder, const JsonField& module, std::int64_t width) {
  const ConfigFile file = module_config(folder, module);
  const JsonField config = file.root();
  if (const auto in = config.at("in_features"); as_size(in) != width) in.refuse("the pooling gives vectors of {} values", width);
  return {.weights = folder / module.at("path").as_string() / "model.safetensors",
          .out = as_size(config.at("out_features")),
          .bias = flag_or(config, "bias", true),
          .activation = dense_activation(config)};
}

/// What follows the encoder, in the order of modules.json: pooling, and at most a dense layer and a normalisation.
void read_modules(const std::filesystem::path& folder, SentenceModelConfig& result) {
  const ConfigFile file = ConfigFile::open(folder / "modules.json");
  result.normalize = false;
  const auto modules = file.root().items();
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const JsonField type = modules[i].at("type");
    const std::string kind = last_part(type.as_string());
    if (i == 0 && kind == "Transformer") continue;
    if (i == 1 && kind == "Pooling") {
      const ConfigFile config = module_config(folder, modules[i]);
      result.pooling = read_pooling(config.root(), result.encoder.hidden_size);
      refuse_hidden_prompt(config.root(), result.prompt);
    } else if (i == 2 && kind == "Dense") {
      result.dense = read_dense(folder, modules[i], result.pooled_width());
    } else if (i == (result.dense ? 3 : 2) && kind == "Normalize") {
      result.normalize = true;
    } else {
      type.refuse("{} is not supported as module {} (supported: Transformer, Pooling, perhaps Dense and Normalize, in this order)",
                  quote_name(kind), i);
    }
  }
  if (result.pooling.empty())
    file.root().refuse("no module pools the tokens (allowed: Transformer, Pooling, perhaps Dense and Normalize, in this order)");
}

/// The field of a config that may be missing altogether.
template <class Read>
void read_optional(const std::filesystem::path& path, Read read) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) read(ConfigFile::open(path).root());
}

void read_prompt(const std::filesystem::path& folder, SentenceModelConfig& result) {
  read_optional(folder / "config_sentence_transformers.json", [&](const JsonField& root) {
    if (auto name = root.find("default_prompt_name")) result.prompt = root.at("prompts").at(name->as_string()).as_string();
  });
}

/// The kinds that files name by numbers: 0 is none, and 4 is of models that score texts.
void read_gguf_pooling(const GgufFile& file, SentenceModelConfig& result) {
  result.max_length = result.encoder.max_positions;
  const GgufValue* kind = file.find_value(fmt::format("{}.pooling_type", file.value("general.architecture").string()));
  constexpr std::array<Pooling, 3> kinds{Pooling::mean, Pooling::cls, Pooling::last_token};
  const std::int64_t number = kind ? kind->integer(0, 4) : 0;
  if (number >= 1 && number <= 3) result.pooling = {kinds[static_cast<std::size_t>(number - 1)]};
}

}  // namespace

std::int64_t longest_text(const std::filesystem::path& folder, const DecoderConfig& encoder) {
  std::int64_t longest = encoder.max_positions;
  auto shorten = [&](const JsonField& root, std::string_view name) {
    // tokenizer_config.json says 1e30 for "no limit", which is not an integer of 64 bits.
    auto field = root.find(name);
    if (!field || field->value().is_number_float()) return;
    const auto length = static_cast<std::int64_t>(field->as_integer(1, std::numeric_limits<std::int64_t>::max()));
    longest = std::min(longest, length);
  };
  bool own = false;
  read_optional(folder / "sentence_bert_config.json", [&](const JsonField& root) {
    if (auto lower = root.find("do_lower_case"); lower && lower->as_bool())
      lower->refuse("true is not supported (the tokenizer may lower-case)");
    own = root.find("max_seq_length").has_value();
    shorten(root, "max_seq_length");
  });
  if (!own) read_optional(folder / "tokenizer_config.json", [&](const JsonField& root) { shorten(root, "model_max_length"); });
  return longest;
}

void SentenceModelConfig::choose(const std::string& name, const SentenceChoices& choices) {
  if (!choices.pooling.empty()) pooling = choices.pooling;
  if (choices.normalize) normalize = *choices.normalize;
  if (pooling.empty())
    fail(
        "{}: the model does not say how the states of tokens become one vector, so that a pooling must be chosen, such as mean or cls "
        "(--pooling)",
        name);
}

SentenceModelConfig SentenceModelConfig::read(const std::filesystem::path& folder, const DecoderConfig& encoder,
                                              const SentenceChoices& choices) {
  SentenceModelConfig result;
  result.encoder = encoder;
  std::error_code error;
  read_prompt(folder, result);
  if (std::filesystem::exists(folder / "modules.json", error)) read_modules(folder, result);
  result.max_length = longest_text(folder, encoder);
  result.choose(folder.string(), choices);
  return result;
}

SentenceModelConfig SentenceModelConfig::read(const GgufFile& file, const DecoderConfig& encoder, const SentenceChoices& choices) {
  SentenceModelConfig result;
  result.encoder = encoder;
  read_gguf_pooling(file, result);
  result.choose(file.name(), choices);
  return result;
}

}  // namespace rlx
