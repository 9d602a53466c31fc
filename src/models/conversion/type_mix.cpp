#include "models/conversion/type_mix.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>

#include "base/names.h"
#include "models/families/layer_name.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::uint32_t none = no_file_type;
constexpr std::array<TypeMix, 41> mixes{
    {{"F32", 0, "F32"},          {"F16", 1, "F16"},        {"BF16", 32, "BF16"},    {"Q4_0", 2, "Q4_0"},        {"Q4_1", 3, "Q4_1"},
     {"Q5_0", 8, "Q5_0"},        {"Q5_1", 9, "Q5_1"},      {"Q8_0", 7, "Q8_0"},     {"Q2_K", 10, "Q2_K"},       {"Q2_K_S", 21, "Q2_K"},
     {"Q3_K_S", 11, "Q3_K"},     {"Q3_K_M", 12, "Q3_K"},   {"Q3_K_L", 13, "Q3_K"},  {"Q4_K_S", 14, "Q4_K"},     {"Q4_K_M", 15, "Q4_K"},
     {"Q5_K_S", 16, "Q5_K"},     {"Q5_K_M", 17, "Q5_K"},   {"Q6_K", 18, "Q6_K"},    {"IQ1_S", 24, "IQ1_S"},     {"IQ1_M", 31, "IQ1_M"},
     {"IQ2_XXS", 19, "IQ2_XXS"}, {"IQ2_XS", 20, "IQ2_XS"}, {"IQ2_S", 28, "IQ2_XS"}, {"IQ2_M", 29, "IQ2_S"},     {"IQ3_XXS", 23, "IQ3_XXS"},
     {"IQ3_XS", 22, "IQ3_S"},    {"IQ3_S", 26, "IQ3_S"},   {"IQ3_M", 27, "IQ3_S"},  {"IQ4_NL", 25, "IQ4_NL"},   {"IQ4_XS", 30, "IQ4_XS"},
     {"TQ1_0", 36, "TQ1_0"},     {"TQ2_0", 37, "TQ2_0"},   {"MXFP4", 38, "MXFP4"},  {"MXFP4_MOE", 38, "MXFP4"}, {"NVFP4", 39, "NVFP4"},
     {"Q8_1", none, "Q8_1"},     {"Q8_K", none, "Q8_K"},   {"F64", none, "F64"},    {"Q3_K", 12, "Q3_K"},       {"Q4_K", 15, "Q4_K"},
     {"Q5_K", 17, "Q5_K"}}};
constexpr std::size_t aliases = 3;  // the last ones

/// What a tensor does in a layer.
enum class TensorRole : std::uint8_t { token_embedding, output, query, key, value, attention_output, gate, up, down, other };

/// Which layers a rule is for. `more_bits`: the first and last eighth, and each third between.
enum class Layers : std::uint8_t { all, first_sixteenth, first_eighth, first_two, first_four, middle, more_bits };

enum class Given : std::uint8_t { always, falcon, grouped, grouped_or_experts, eight_experts, importance, no_importance };

/// Tensors of `role` get `format` (empty: that of most tensors) in the mixes listed.
struct MixRule {
  std::string_view mixes;
  TensorRole role;
  Layers layers;
  Given given;
  std::string_view format;
};

constexpr std::string_view lowest = " IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M ";
constexpr std::string_view lowest_and_iq3 = " IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M IQ3_XXS ";
constexpr std::string_view others =
    " Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q2_K_S Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ3_XXS IQ3_XS IQ3_S IQ3_M IQ4_NL IQ4_XS "
    "TQ1_0 TQ2_0 NVFP4 ";
constexpr std::string_view not_8_bit =
    " Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q2_K_S Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ3_XS IQ3_S IQ3_M IQ4_NL IQ4_XS TQ1_0 TQ2_0 "
    "NVFP4 MXFP4 ";

/// The first rule that fits counts.
constexpr MixRule mix_rules[] = {
    {not_8_bit, TensorRole::output, Layers::all, Given::falcon, "Q8_0"},
    {lowest_and_iq3, TensorRole::output, Layers::all, Given::falcon, "Q8_0"},
    {lowest_and_iq3, TensorRole::output, Layers::all, Given::always, "Q5_K"},
    {not_8_bit, TensorRole::output, Layers::all, Given::always, "Q6_K"},

    {" IQ2_XXS IQ2_XS IQ1_S IQ1_M ", TensorRole::token_embedding, Layers::all, Given::always, "Q2_K"},
    {" IQ2_S IQ2_M IQ3_XXS ", TensorRole::token_embedding, Layers::all, Given::always, "IQ3_S"},
    {" TQ1_0 TQ2_0 ", TensorRole::token_embedding, Layers::all, Given::always, "Q4_K"},

    {lowest, TensorRole::value, Layers::all, Given::grouped_or_experts, "Q4_K"},
    {" IQ2_S IQ2_M ", TensorRole::value, Layers::all, Given::always, "IQ3_S"},
    {lowest, TensorRole::value, Layers::all, Given::always, "Q2_K"},
    {lowest, TensorRole::key, Layers::all, Given::eight_experts, "Q4_K"},
    {" IQ2_S IQ2_M ", TensorRole::down, Layers::first_eighth, Given::always, "IQ3_S"},
    {lowest, TensorRole::down, Layers::first_eighth, Given::always, "Q2_K"},
    {lowest, TensorRole::attention_output, Layers::all, Given::eight_experts, "Q5_K"},
    {" IQ1_S IQ1_M ", TensorRole::attention_output, Layers::all, Given::always, "IQ2_XXS"},
    {" IQ2_S IQ2_M ", TensorRole::attention_output, Layers::all, Given::always, "IQ3_S"},

    {others, TensorRole::value, Layers::all, Given::eight_experts, "Q8_0"},
    {" Q2_K Q2_K_S IQ3_XXS IQ3_XS IQ3_S ", TensorRole::value, Layers::all, Given::grouped, "Q4_K"},
    {" Q2_K ", TensorRole::value, Layers::all, Given::always, "Q3_K"},
    {" IQ3_XXS ", TensorRole::value, Layers::all, Given::no_importance, "IQ3_S"},
    {" IQ3_M ", TensorRole::value, Layers::all, Given::always, "Q4_K"},
    {" Q3_K_M ", TensorRole::value, Layers::first_two, Given::always, "Q5_K"},
    {" Q3_K_M ", TensorRole::value, Layers::all, Given::always, "Q4_K"},
    {" Q3_K_L ", TensorRole::value, Layers::all, Given::always, "Q5_K"},
    {" IQ4_NL IQ4_XS ", TensorRole::value, Layers::all, Given::grouped, "Q5_K"},
    {" Q4_K_M Q5_K_M ", TensorRole::value, Layers::more_bits, Given::always, "Q6_K"},
    {" Q4_K_S ", TensorRole::value, Layers::first_four, Given::always, "Q5_K"},

    {others, TensorRole::key, Layers::all, Given::eight_experts, "Q8_0"},
    {" IQ3_XS ", TensorRole::key, Layers::all, Given::always, "IQ3_XXS"},
    {" IQ3_XXS ", TensorRole::key, Layers::all, Given::always, "IQ2_S"},
    {" IQ3_XS ", TensorRole::query, Layers::all, Given::always, "IQ3_XXS"},
    {" IQ3_XXS ", TensorRole::query, Layers::all, Given::always, "IQ2_S"},

    {" Q3_K_M ", TensorRole::down, Layers::first_sixteenth, Given::always, "Q5_K"},
    {" Q3_K_M ", TensorRole::down, Layers::more_bits, Given::falcon, "Q4_K"},
    {" Q3_K_M ", TensorRole::down, Layers::all, Given::falcon, ""},
    {" Q3_K_M ", TensorRole::down, Layers::all, Given::always, "Q4_K"},
    {" Q3_K_L ", TensorRole::down, Layers::all, Given::falcon, "Q4_K"},
    {" Q3_K_L ", TensorRole::down, Layers::all, Given::always, "Q5_K"},
    {" Q4_K_M ", TensorRole::down, Layers::first_sixteenth, Given::falcon, "Q6_K"},
    {" Q4_K_M ", TensorRole::down, Layers::more_bits, Given::falcon, "Q5_K"},
    {" Q4_K_M ", TensorRole::down, Layers::all, Given::falcon, ""},
    {" Q4_K_M Q5_K_M ", TensorRole::down, Layers::more_bits, Given::always, "Q6_K"},
    {" Q4_K_S ", TensorRole::down, Layers::all, Given::falcon, ""},
    {" Q4_K_S ", TensorRole::down, Layers::first_eighth, Given::always, "Q5_K"},
    {" Q2_K ", TensorRole::down, Layers::all, Given::always, "Q3_K"},
    {" Q2_K_S IQ3_M ", TensorRole::down, Layers::first_eighth, Given::always, "Q4_K"},
    {" IQ3_M ", TensorRole::down, Layers::more_bits, Given::eight_experts, "Q4_K"},
    {" IQ3_XXS ", TensorRole::down, Layers::first_eighth, Given::no_importance, "Q4_K"},
    {" IQ3_XXS ", TensorRole::down, Layers::all, Given::no_importance, "Q3_K"},
    {" IQ4_NL IQ4_XS ", TensorRole::down, Layers::first_eighth, Given::no_importance, "Q5_K"},
    {" Q4_0 ", TensorRole::down, Layers::first_eighth, Given::importance, "Q4_1"},  // even with importance, 4 bits fail in the first layers
    {" Q5_0 ", TensorRole::down, Layers::first_eighth, Given::importance, "Q5_1"},

    {" Q3_K_L ", TensorRole::attention_output, Layers::all, Given::falcon, "Q4_K"},
    {others, TensorRole::attention_output, Layers::all, Given::falcon, ""},
    {" Q2_K IQ3_XS IQ3_XXS Q3_K_S Q3_K_M IQ4_NL Q4_K_S Q4_K_M IQ3_S IQ3_M IQ4_XS ", TensorRole::attention_output, Layers::all,
     Given::eight_experts, "Q5_K"},
    {others, TensorRole::attention_output, Layers::all, Given::eight_experts, ""},
    {" Q2_K ", TensorRole::attention_output, Layers::all, Given::always, "Q3_K"},
    {" IQ3_XXS ", TensorRole::attention_output, Layers::all, Given::always, "IQ3_S"},
    {" Q3_K_M IQ3_M ", TensorRole::attention_output, Layers::all, Given::always, "Q4_K"},
    {" Q3_K_L ", TensorRole::attention_output, Layers::all, Given::always, "Q5_K"},

    {" IQ3_XS ", TensorRole::gate, Layers::middle, Given::always, "IQ3_XXS"},
    {" IQ3_XS ", TensorRole::up, Layers::middle, Given::always, "IQ3_XXS"},
};

/// Where rows are no multiple of a block: a type of shorter blocks that is at least as good.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> fallbacks{{{"IQ1_S", "IQ4_NL"},
                                                                                   {"IQ1_M", "IQ4_NL"},
                                                                                   {"IQ2_XXS", "IQ4_NL"},
                                                                                   {"IQ2_XS", "IQ4_NL"},
                                                                                   {"IQ2_S", "IQ4_NL"},
                                                                                   {"IQ3_XXS", "IQ4_NL"},
                                                                                   {"IQ3_S", "IQ4_NL"},
                                                                                   {"IQ4_XS", "IQ4_NL"},
                                                                                   {"Q2_K", "Q4_0"},
                                                                                   {"Q3_K", "Q4_0"},
                                                                                   {"TQ1_0", "Q4_0"},
                                                                                   {"TQ2_0", "Q4_0"},
                                                                                   {"Q4_K", "Q5_0"},
                                                                                   {"Q5_K", "Q5_1"},
                                                                                   {"Q6_K", "Q8_0"},
                                                                                   {"Q8_K", "Q8_0"}}};

/// Parts of the names of matrices that keep their type: they are small, or decide much.
constexpr std::array<std::string_view, 19> kept_parts{
    "_norm.weight", "ffn_gate_inp",   "ffn_gate_tid2eid", "altup",         "laurel",     "per_layer_model_proj",
    "ssm_conv1d",   "shortconv.conv", "indexer.",         "time_mix_",     "attn_rel_b", ".position_embd",
    "sam.",         ".rel_pos",       ".patch_embd",      ".patch_merger", "codebook",   "mm.a.code_embd",
    "token_types"};

const BlockFormat& format_named(std::string_view name) {
  const BlockFormat* format = find_block_format(name);
  if (!format) fail_internal("type mix: no block format {}", name);
  return *format;
}

bool is_quantized(const TensorView& tensor) {
  const auto sizes = std::count_if(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t size) { return size > 1; });
  if (sizes < 2 || !tensor.name.ends_with("weight") || tensor.name == "position_embd.weight") return false;
  if (tensor.format && tensor.format->values == 1 && !is_float(tensor.dtype)) return false;
  return std::none_of(kept_parts.begin(), kept_parts.end(),
                      [&](std::string_view part) { return tensor.name.find(part) != std::string::npos; });
}

TensorRole role_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, TensorRole>, 9> parts{{{"attn_qkv.weight", TensorRole::value},
                                                                          {"attn_kv_b.weight", TensorRole::value},
                                                                          {"attn_v.weight", TensorRole::value},
                                                                          {"attn_k.weight", TensorRole::key},
                                                                          {"attn_q.weight", TensorRole::query},
                                                                          {"attn_output.weight", TensorRole::attention_output},
                                                                          {"ffn_up", TensorRole::up},
                                                                          {"ffn_gate", TensorRole::gate},
                                                                          {"ffn_down", TensorRole::down}}};
  if (name == "output.weight") return TensorRole::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return TensorRole::token_embedding;
  for (const auto& [part, role] : parts)
    if (name.find(part) != std::string_view::npos) return role;
  return TensorRole::other;
}

std::int64_t layer_of(std::string_view name) { return gguf_layer(name).value_or(0); }

bool fits_layers(Layers layers, std::int64_t layer, std::int64_t count) {
  switch (layers) {
    case Layers::all: return true;
    case Layers::first_sixteenth: return layer < count / 16;
    case Layers::first_eighth: return layer < count / 8;
    case Layers::first_two: return layer < 2;
    case Layers::first_four: return layer < 4;
    case Layers::middle: return layer >= count / 8 && layer < 7 * count / 8;
    case Layers::more_bits: return layer < count / 8 || layer >= 7 * count / 8 || (layer - count / 8) % 3 == 2;
  }
  return false;
}

bool is_given(Given given, const ModelFacts& facts) {
  switch (given) {
    case Given::always: return true;
    case Given::falcon: return facts.falcon;
    case Given::grouped: return facts.heads_per_kv_head >= 4;
    case Given::grouped_or_experts: return facts.heads_per_kv_head >= 4 || facts.experts >= 4;
    case Given::eight_experts: return facts.experts == 8;
    case Given::importance: return facts.importance;
    case Given::no_importance: return !facts.importance;
  }
  return false;
}

/// The names of the tensors that some rules count, layer after layer: not every layer of a hybrid has one.
std::vector<std::string_view> value_tensors(std::span<const TensorView> tensors) {
  std::vector<std::string_view> names;
  for (const TensorView& tensor : tensors)
    if (role_of(tensor.name) == TensorRole::value) names.push_back(tensor.name);
  std::stable_sort(names.begin(), names.end(), [](std::string_view a, std::string_view b) { return layer_of(a) < layer_of(b); });
  return names;
}

class MixReader {
 public:
  MixReader(const TypeMix& mix, std::span<const TensorView> tensors, const ModelFacts& facts)
      : mix_(mix), facts_(facts), values_(value_tensors(tensors)) {
    tied_ = std::none_of(tensors.begin(), tensors.end(), [](const TensorView& tensor) { return tensor.name == "output.weight"; });
  }

  const BlockFormat& format(const TensorView& tensor) const {
    const BlockFormat& most = format_named(mix_.format);
    TensorRole role = role_of(tensor.name);
    if (tied_ && role == TensorRole::token_embedding) role = TensorRole::output;
    if (role == TensorRole::output && tensor.shape.back() % most.values != 0) return format_named("Q8_0");
    if (mix_.name == "MXFP4_MOE" && (role == TensorRole::output || tensor.shape.size() < 3)) return format_named("Q8_0");
    const BlockFormat& chosen = *by_rule(role, tensor, &most);
    // Of 70B models eight heads share the values: more bits there cost next to nothing.
    if (role == TensorRole::value && facts_.layers == 80 && facts_.heads_per_kv_head > 1 &&
        (chosen.name == "Q3_K" || chosen.name == "Q4_K"))
      return format_named("Q5_K");
    return chosen;
  }

 private:
  const BlockFormat* by_rule(TensorRole role, const TensorView& tensor, const BlockFormat* most) const {
    std::int64_t layer = layer_of(tensor.name), count = facts_.layers;
    if (role == TensorRole::value) {
      layer = std::find(values_.begin(), values_.end(), tensor.name) - values_.begin();
      count = static_cast<std::int64_t>(values_.size());
    }
    const std::string listed = fmt::format(" {} ", mix_.name);
    for (const MixRule& rule : mix_rules)
      if (rule.role == role && rule.mixes.find(listed) != std::string_view::npos && fits_layers(rule.layers, layer, count) &&
          is_given(rule.given, facts_))
        return rule.format.empty() ? most : &format_named(rule.format);
    return most;
  }

  const TypeMix& mix_;
  const ModelFacts& facts_;
  std::vector<std::string_view> values_;
  bool tied_ = false;
};

TypeChoice fitting_rows(const BlockFormat& wanted, std::int64_t row) {
  if (row % wanted.values == 0) return {&wanted, false};
  const auto found = std::find_if(fallbacks.begin(), fallbacks.end(), [&](const auto& pair) { return pair.first == wanted.name; });
  if (found != fallbacks.end() && row % format_named(found->second).values == 0) return {&format_named(found->second), true};
  return {&format_named("F16"), true};
}

}  // namespace

std::span<const TypeMix> type_mixes() { return std::span(mixes).first(mixes.size() - aliases); }

bool needs_importance(std::string_view type) {
  constexpr std::string_view few_bits[] = {"IQ1", "IQ2", "IQ3"};
  return std::ranges::any_of(few_bits, [&](std::string_view start) { return type.starts_with(start); });
}

const TypeMix& find_type_mix(std::string_view name) {
  const auto same = [](char a, char b) {
    return std::toupper(static_cast<unsigned char>(a)) == std::toupper(static_cast<unsigned char>(b));
  };
  for (std::size_t i = 0; i < mixes.size(); ++i)
    if (std::equal(name.begin(), name.end(), mixes[i].name.begin(), mixes[i].name.end(), same))
      return i < mixes.size() - aliases ? mixes[i] : find_type_mix(fmt::format("{}_M", mixes[i].name));
  std::vector<std::string_view> known;
  for (const TypeMix& mix : type_mixes()) known.push_back(mix.name);
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  fail("unknown type {}{}", quote_name(name), near_or_allowed(upper, known));
}

std::vector<TypeChoice> choose_types(const TypeMix& mix, std::span<const TensorView> tensors, const ModelFacts& facts,
                                     std::span<const TypeOverride> overrides, bool pure) {
  const BlockFormat& most = format_named(mix.format);
  const MixReader reader(mix, tensors, facts);
  std::vector<TypeChoice> choices;
  std::vector<bool> counts(overrides.size());
  for (const TensorView& tensor : tensors) {
    if (!is_quantized(tensor)) {
      choices.push_back({tensor.format, false});
      continue;
    }
    const auto named = std::find_if(overrides.begin(), overrides.end(),
                                    [&](const TypeOverride& each) { return RegexSearch(each.pattern, tensor.name).next().has_value(); });
    if (named != overrides.end()) counts[static_cast<std::size_t>(named - overrides.begin())] = true;
    const BlockFormat& wanted = named != overrides.end() ? *named->format : pure || most.values == 1 ? most : reader.format(tensor);
    choices.push_back(fitting_rows(wanted, tensor.shape.back()));
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (!counts[i]) fail("tensor type {}: no matrix has such a name, or none that an earlier one leaves", quote_name(overrides[i].text));
  return choices;
}

}  // namespace rlx
