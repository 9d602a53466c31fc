#include "models/config/recommended_sampling.h"

#include "formats/gguf/gguf.h"
#include "models/config/config_field.h"
#include "models/config/model_folder.h"

namespace rlx {
namespace {

/// Where a number stands, if anywhere, and what it may be: as sampling::check has it.
struct SamplingPlace {
  const char *gguf, *json;
  void (*set)(SamplingOptions&, double);
  double least, most;
};

constexpr double large_number = 1e6, many_tokens = 1 << 30, above_zero = 1e-6;

template <auto member>
void set_number(SamplingOptions& options, double value) {
  auto& number = options.*member;
  number = static_cast<std::remove_reference_t<decltype(number)>>(value);
}

/// -1 is another word for "all".
void set_top_k(SamplingOptions& options, double value) { options.top_k = value < 0 ? 0 : static_cast<std::int64_t>(value); }

constexpr SamplingPlace sampling_places[] = {
    {"temp", "temperature", set_number<&SamplingOptions::temperature>, 0, large_number},
    {"top_k", "top_k", set_top_k, -1, many_tokens},
    {"", "typical_p", set_number<&SamplingOptions::typical_p>, above_zero, 1},
    {"top_p", "top_p", set_number<&SamplingOptions::top_p>, above_zero, 1},
    {"min_p", "min_p", set_number<&SamplingOptions::min_p>, 0, 1},
    {"xtc_probability", "", set_number<&SamplingOptions::xtc_probability>, 0, 1},
    {"xtc_threshold", "", set_number<&SamplingOptions::xtc_threshold>, 0, 1},
    {"penalty_repeat", "repetition_penalty", set_number<&SamplingOptions::repetition_penalty>, above_zero, large_number},
    {"penalty_last_n", "", set_number<&SamplingOptions::penalty_window>, -1, many_tokens},
    {"mirostat", "", set_number<&SamplingOptions::mirostat>, 0, 2},
    {"mirostat_tau", "", set_number<&SamplingOptions::mirostat_tau>, above_zero, large_number},
    {"mirostat_eta", "", set_number<&SamplingOptions::mirostat_eta>, above_zero, large_number},
};

std::vector<RecommendedNumber> recommended_by(const GgufFile& file) {
  std::vector<RecommendedNumber> numbers;
  for (const SamplingPlace& place : sampling_places) {
    const std::string key = fmt::format("general.sampling.{}", place.gguf);
    const GgufValue* value = *place.gguf == '\0' ? nullptr : file.find_value(key);
    if (value == nullptr) continue;
    if (!(value->number() >= place.least && value->number() <= place.most))
      fail("{}: key '{}' is {} (allowed: {}..{})", file.name(), key, value->number(), place.least, place.most);
    numbers.push_back({place.set, value->number()});
  }
  return numbers;
}

std::vector<RecommendedNumber> recommended_by(const JsonField& config) {
  if (!flag_or(config, "do_sample", true)) return {{set_number<&SamplingOptions::temperature>, 0}};
  std::vector<RecommendedNumber> numbers;
  for (const SamplingPlace& place : sampling_places)
    if (const auto field = *place.json == '\0' ? std::nullopt : config.find(place.json))
      numbers.push_back({place.set, as_number(*field, place.least, place.most)});
  return numbers;
}

}  // namespace

std::vector<RecommendedNumber> recommended_sampling(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  if (const GgufFile* file = checkpoint.gguf()) return recommended_by(*file);
  std::error_code error;
  const std::filesystem::path config = path / "generation_config.json";
  return std::filesystem::exists(config, error) ? recommended_by(ConfigFile::open(config).root()) : std::vector<RecommendedNumber>();
}

}  // namespace rlx
