#include "models/weights/peft_config.h"

#include <cmath>

#include "base/names.h"
#include "models/config/config_field.h"
#include "models/config/model_folder.h"

namespace rlx {
namespace {

constexpr double largest_number = 1e9;  // of ranks and alphas

/// Whether a field asks for something: neither absent nor null, false or empty.
bool is_set(const JsonField& config, std::string_view name) {
  const auto field = config.find(name);
  if (!field) return false;
  const json::Value& value = field->value();
  return value.is_boolean() ? value.get<bool>() : !(value.is_array() || value.is_object() || value.is_string()) || !value.empty();
}

/// What makes a model of other than low-rank changes of its matrices.
void refuse_others(const JsonField& config) {
  config.at("peft_type").as_one_of({"LORA"});
  if (const auto bias = config.find("bias")) bias->as_one_of({"none"});
  for (const auto& [name, what] : {std::pair{"use_dora", "DoRA, which rescales the model's own matrices"},
                                   {"lora_bias", "a bias of the change"},
                                   {"use_qalora", "QALoRA"},
                                   {"use_bdlora", "block-diagonal changes"},
                                   {"modules_to_save", "modules that are replaced as a whole"},
                                   {"trainable_token_indices", "embeddings that are replaced"},
                                   {"target_parameters", "parameters outside of linear layers"},
                                   {"layer_replication", "layers that are used twice"},
                                   {"alora_invocation_tokens", "an adapter that begins where certain tokens stand"},
                                   {"arrow_config", "a choice among adapters"}})
    if (is_set(config, name)) config.at(name).refuse("{} is not supported (allowed: none)", what);
}

/// Some initial values are taken out of the model's own weights, which then are others than those of the file.
void check_initial_values(const JsonField& config) {
  const auto field = config.find("init_lora_weights");
  if (field && !field->value().is_boolean()) field->as_one_of({"gaussian", "eva", "orthogonal"});
}

}  // namespace

PeftConfig PeftConfig::open(const std::filesystem::path& path) {
  const ConfigFile file = ConfigFile::open(path);
  const JsonField config = file.root();
  refuse_others(config);
  check_initial_values(config);
  const auto patterns = [&](const char* name, double least) {
    Patterns result;
    const auto field = config.find(name);
    if (!field) return result;
    for (const auto& [pattern, number] : field->members())
      result.emplace_back(Regex(fmt::format("^(?:.*\\.)?(?:{})$", pattern), field->place()), as_number(number, least, largest_number));
    return result;
  };
  PeftConfig result;
  result.rank_ = as_size(config.at("r"));
  result.alpha_ = as_number(config.at("lora_alpha"), -largest_number, largest_number);
  result.root_of_rank_ = flag_or(config, "use_rslora", false);
  result.ranks_ = patterns("rank_pattern", 1);
  result.alphas_ = patterns("alpha_pattern", -largest_number);
  return result;
}

double PeftConfig::scale_of(std::string_view module, std::int64_t rank, std::string_view file) const {
  const auto number_of = [&](const Patterns& patterns, double otherwise) {
    for (const auto& [pattern, number] : patterns)
      if (RegexSearch(pattern, module).next()) return number;
    return otherwise;
  };
  const double wanted = number_of(ranks_, static_cast<double>(rank_)), size = static_cast<double>(rank);
  if (size != wanted) fail("{}: module {} has rank {}, adapter_config.json says {}", file, quote_name(module), rank, wanted);
  return number_of(alphas_, alpha_) / (root_of_rank_ ? std::sqrt(size) : size);
}

}  // namespace rlx
