#include "models/config/sentence_config.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/ranges.h>

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

struct ActivationClass {
  std::string_view name;
  HiddenActivation activation;
};

/// The classes of torch.nn.
constexpr std::array<ActivationClass, 10> activation_classes{{{"Identity", HiddenActivation::linear},
                                                              {"Tanh", HiddenActivation::tanh},
                                                              {"GELU", HiddenActivation::gelu},
                                                              {"ReLU", HiddenActivation::relu},
                                                              {"ReLU6", HiddenActivation::relu6},
                                                              {"SiLU", HiddenActivation::silu},
                                                              {"Mish", HiddenActivation::mish},
                                                              {"Sigmoid", HiddenActivation::sigmoid},
                                                              {"Hardswish", HiddenActivation::hard_swish},
                                                              {"LeakyReLU", HiddenActivation::leaky_relu}}};

HiddenActivation dense_activation(const JsonField& config) {
  const auto field = config.find("activation_function");
  if (!field) return HiddenActivation::tanh;  // the module's own default
  const std::string name = last_part(field->as_string());
  std::vector<std::string_view> known;
  for (const ActivationClass& each : activation_classes) {
    if (each.name == name) return each.activation;
    known.push_back(each.name);
  }
  field->refuse("{} is not supported (allowed: {})", quote_name(name), fmt::join(known, ", "));
}

SentenceDense read_dense(const std::filesystem::path& folder, const JsonField& module, std::int64_t width) {
  const ConfigFile file = module_config(folder, module);
  const JsonField config = file.root();
  if (const auto in = config.at("in_features"); as_size(in) != width) in.refuse("the pooling gives vectors of {} values", width);
  return {.weights = folder / module.at("path").as_string() / "model.safetensors",
          .in = width,
          .out = as_size(config.at("out_features")),
          .bias = flag_or(config, "bias", true),
          .activation = dense_activation(config)};
}

constexpr std::string_view supported_modules = "Transformer, Pooling, perhaps layers of Dense and Normalize, in this order";

/// What follows the encoder, in the order of modules.json: pooling, and perhaps dense layers and a normalisation.
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
    } else if (i > 1 && kind == "Dense" && !result.normalize) {
      result.dense.push_back(read_dense(folder, modules[i], result.width()));
    } else if (i > 1 && kind == "Normalize" && !result.normalize) {
      result.normalize = true;
    } else {
      type.refuse("{} is not supported as module {} (supported: {})", quote_name(kind), i, supported_modules);
    }
  }
  if (result.pooling.empty()) file.root().refuse("no module pools the tokens (allowed: {})", supported_modules);
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

/// A value below the architecture's name, or null.
const GgufValue* find_gguf(const GgufFile& file, std::string_view key) {
  return file.find_value(fmt::format("{}.{}", file.value("general.architecture").string(), key));
}

/// Layers behind the pooling; their activations are named by a key of ours.
void read_gguf_dense(const GgufFile& file, SentenceModelConfig& result) {
  for (std::string_view name : gguf_dense_names) {
    const TensorView* matrix = file.find(fmt::format("{}.weight", name));
    if (matrix == nullptr) return;
    if (matrix->shape.size() != 2 || matrix->shape[1] != result.width())
      fail("{}: tensor {} is {} (needed: a matrix for vectors of {} values)", file.name(), quote_name(matrix->name),
           type_text(matrix->dtype, matrix->shape), result.width());
    SentenceDense dense{.weights = {}, .in = matrix->shape[1], .out = matrix->shape[0]};
    dense.bias = file.find(fmt::format("{}.bias", name)) != nullptr;
    const std::string key = fmt::format("{}_activation", name);
    if (const GgufValue* activation = find_gguf(file, key)) {
      const json::Value text = std::string(activation->string());
      dense.activation = read_activation(JsonField(text, file.name(), key));
    }
    result.dense.push_back(dense);
  }
}

/// How the file says that states become a vector, where it does; the kinds are numbers, of which 0 is none and 4 of models that score
/// texts.
std::optional<Pooling> gguf_pooling(const GgufFile& file) {
  const GgufValue* kind = find_gguf(file, "pooling_type");
  constexpr std::array<Pooling, 3> kinds{Pooling::mean, Pooling::cls, Pooling::last_token};
  const std::int64_t number = kind ? kind->integer(0, 4) : 0;
  return number >= 1 && number <= 3 ? std::optional(kinds[static_cast<std::size_t>(number - 1)]) : std::nullopt;
}

}  // namespace

bool names_pooling(const GgufFile& file) { return gguf_pooling(file).has_value(); }

std::string dense_activation_class(HiddenActivation activation) {
  for (const ActivationClass& each : activation_classes)
    if (each.activation == activation)
      return fmt::format("torch.nn.modules.{}.{}", each.name == "Identity" ? "linear" : "activation", each.name);
  fail("a layer behind a pooling has the activation {}, for which sentence-transformers has no class", activation_name(activation));
}

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
  result.max_length = encoder.max_positions;
  if (const auto pooling = gguf_pooling(file)) result.pooling = {*pooling};
  if (const GgufValue* length = find_gguf(file, gguf_embedding_keys.max_length))
    result.max_length = length->integer(1, encoder.max_positions);
  if (const GgufValue* prompt = find_gguf(file, gguf_embedding_keys.prompt)) result.prompt = prompt->string();
  if (const GgufValue* normalize = find_gguf(file, gguf_embedding_keys.normalize)) result.normalize = normalize->boolean();
  result.choose(file.name(), choices);
  read_gguf_dense(file, result);
  return result;
}

}  // namespace rlx
