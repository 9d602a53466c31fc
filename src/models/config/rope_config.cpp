#include "models/config/rope_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "models/config/class_defaults.h"
#include "models/config/config_field.h"

namespace rlx {
namespace {

std::optional<JsonField> member(const std::optional<JsonField>& object, std::string_view name) {
  return object ? object->find(name) : std::nullopt;
}

/// A pair whose frequency is divided by this does not turn.
constexpr double frozen = 1e30;

std::vector<double> read_factors(const JsonField& rope, std::string_view name, std::int64_t pairs) {
  const auto items = rope.at(name).items();
  if (static_cast<std::int64_t>(items.size()) != pairs)
    rope.at(name).refuse("{} factors for {} pairs of a head's elements", items.size(), pairs);
  std::vector<double> factors;
  for (const JsonField& item : items) factors.push_back(as_number(item, 1e-6, 2 * frozen));
  return factors;
}

double trained_length(const JsonField& config, const JsonField& rope) {
  const std::int64_t own = size_or(config, "original_max_position_embeddings", size_or(config, "max_position_embeddings", 2048));
  return static_cast<double>(size_or(rope, "original_max_position_embeddings", own));
}

void read_longrope(const JsonField& config, const JsonField& rope, RopeOptions& options) {
  options.scaling = RopeScaling::longrope;
  options.original_length = trained_length(config, rope);
  options.factor = std::max(1.0, static_cast<double>(as_size(config.at("max_position_embeddings"))) / options.original_length);
  if (!config.find("original_max_position_embeddings")) options.factor = number_or(rope, "factor", options.factor);
  // Written out, because both sets of factors share it, whatever lengths they are for.
  const double derived = options.factor <= 1 ? 1 : std::sqrt(1 + std::log(options.factor) / std::log(options.original_length));
  options.attention_factor = number_or(rope, "attention_factor", derived);
  options.short_factors = read_factors(rope, "short_factor", options.dims / 2);
  options.long_factors = read_factors(rope, "long_factor", options.dims / 2);
}

/// What YaRN multiplies by where contexts are `factor` times longer, with a weight that DeepSeek's configs bring.
double yarn_scale(double factor, double weight) { return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1; }

/// YaRN's factor of sines and cosines.
double yarn_magnitude(const JsonField& rope, double factor) {
  const double given = number_or(rope, "attention_factor", 0);
  if (given > 0 || !rope.find("mscale") || !rope.find("mscale_all_dim")) return given;
  return yarn_scale(factor, number_or(rope, "mscale", 1)) / yarn_scale(factor, number_or(rope, "mscale_all_dim", 1));
}

/// The same factors at every length, which stand for kinds that the op does not know.
void set_factors(RopeOptions& options, std::vector<double> factors, double magnitude) {
  options.scaling = RopeScaling::longrope;
  options.attention_factor = magnitude;
  options.short_factors = options.long_factors = std::move(factors);
}

void check_fraction(const JsonField& config, double part) {
  if (!(part > 0 && part <= 1)) config.refuse("a part of {} of a head's elements turns (allowed: above 0, up to 1)", part);
}

/// Frequencies are those of a whole head, of whose pairs the first `part` turn (Gemma 4).
void read_proportional(const JsonField& rope, std::int64_t head_size, double part, RopeOptions& options) {
  check_fraction(rope, part);
  options.dims = head_size;
  const auto turning = static_cast<std::size_t>(part * static_cast<double>(head_size) / 2);
  std::vector<double> factors(static_cast<std::size_t>(head_size / 2), frozen);
  std::fill_n(factors.begin(), std::min(turning, factors.size()), number_or(rope, "factor", 1));
  set_factors(options, std::move(factors), 1);
}

/// YaRN's ramp, whose ends stay between pairs where the config says `truncate: false`; the op has them at whole pairs.
void spread_ramp(RopeOptions& options) {
  const auto pair_with_turns = [&](double turns) {
    return static_cast<double>(options.dims) * std::log(options.original_length / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(options.theta));
  };
  const double low = std::max(pair_with_turns(options.beta_fast), 0.0);
  double high = std::min(pair_with_turns(options.beta_slow), static_cast<double>(options.dims - 1));
  if (low == high) high += 0.001;
  std::vector<double> factors;
  for (std::int64_t i = 0; i < options.dims / 2; ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    factors.push_back(1 / (stretched / options.factor + 1 - stretched));
  }
  set_factors(options, std::move(factors), options.attention_factor > 0 ? options.attention_factor : yarn_scale(options.factor, 1));
}

/// How often a pair turns in the trained context, of which a logarithm is taken.
double turns_or(const JsonField& rope, std::string_view name, double otherwise) {
  const auto field = rope.find(name);
  return field ? as_number(*field, 1e-6, 1e6) : otherwise;
}

void read_yarn(const JsonField& rope, RopeOptions& options) {
  options.scaling = RopeScaling::yarn;
  options.beta_fast = turns_or(rope, "beta_fast", 32);
  options.beta_slow = turns_or(rope, "beta_slow", 1);
  options.attention_factor = yarn_magnitude(rope, options.factor);
  if (!flag_or(rope, "truncate", true)) spread_ramp(options);
}

/// How much longer contexts are than in training; YaRN's is derived where it is left out.
double read_factor(const JsonField& config, const JsonField& rope, bool yarn) {
  if (yarn && !rope.find("factor"))
    return static_cast<double>(as_size(config.at("max_position_embeddings"))) / trained_length(config, rope);
  return as_number(rope.at("factor"), 1e-6, 1e6);
}

void read_scaling(const JsonField& config, const JsonField& rope, RopeOptions& options) {
  auto kind = rope.find("rope_type");
  if (!kind) kind = rope.find("type");
  if (!kind) return;
  const std::size_t which = kind->as_one_of({"default", "linear", "llama3", "yarn", "longrope", "su", "dynamic"});
  if (which == 0 || which == 6) return;  // dynamic: changes nothing up to the length of the model
  if (which == 4 || which == 5) return read_longrope(config, rope, options);
  options.factor = read_factor(config, rope, which == 3);
  if (which == 1) {
    options.scaling = RopeScaling::linear;
    return;
  }
  options.original_length = trained_length(config, rope);
  if (which == 2) {
    options.scaling = RopeScaling::llama3;
    options.low_freq_factor = as_number(rope.at("low_freq_factor"), 1e-6, 1e6);
    options.high_freq_factor = as_number(rope.at("high_freq_factor"), options.low_freq_factor * 1.000001, 1e7);
    return;
  }
  read_yarn(rope, options);
}

bool is_proportional(const std::optional<JsonField>& rope) {
  const auto kind = member(rope, "rope_type");
  return kind && kind->as_string() == "proportional";
}

/// Of both spellings `rope_scaling` counts, which people add to stretch a model; transformers 5 has it so, too.
std::optional<JsonField> rope_of(const JsonField& config, std::string_view layer_type) {
  const auto rope = config.find("rope_parameters"), scaling = config.find("rope_scaling");
  const auto own = layer_type.empty() ? std::nullopt : member(rope, layer_type);
  const bool scaled = scaling && scaling->value().is_object() && !scaling->value().empty();
  if (own && scaled) scaling->refuse("is not supported beside rope_parameters of each type of layer (allowed: one of the two)");
  return own ? own : scaled || !rope ? scaling : rope;
}

/// Classes without a default of the field ignore it or fail, as the version has it.
void check_part(const JsonField& config, double part) {
  const auto type = config.find("model_type");
  if (part != 1 && type && !class_defaults(type->as_string()).contains("partial_rotary_factor"))
    config.refuse("partial_rotary_factor: {} is not supported by {} (allowed: 1)", part, type->as_string());
}

}  // namespace

std::int64_t rotary_part(const JsonField& config, std::int64_t head_size, double part) {
  check_fraction(config, part);
  const auto dims = static_cast<std::int64_t>(static_cast<double>(head_size) * part);
  if (dims < 2 || dims % 2 != 0)
    config.refuse("a part of {} turns {} of a head's {} elements (allowed: an even number, at least 2)", part, dims, head_size);
  return dims;
}

RopeOptions read_rope(const JsonField& config, std::int64_t head_size, std::string_view layer_type) {
  const auto rope = rope_of(config, layer_type);
  RopeOptions options;
  const JsonField& numbers = rope ? *rope : config;
  options.theta = number_or(numbers, "rope_theta", number_or(config, "rope_theta", 10000));
  if (!(options.theta > 0)) config.refuse("rope_theta {} (allowed: above 0)", options.theta);
  const double part = number_or(numbers, "partial_rotary_factor", number_or(config, "partial_rotary_factor", 1));
  if (is_proportional(rope)) return read_proportional(*rope, head_size, part, options), options;
  check_part(config, part);
  options.dims = rotary_part(config, head_size, part);
  if (rope) read_scaling(config, *rope, options);
  return options;
}

double yarn_score_factor(const JsonField& config) {
  const auto rope = rope_of(config, "");
  if (!rope || !rope->find("mscale_all_dim") || !rope->find("factor")) return 1;
  const double scale = yarn_scale(number_or(*rope, "factor", 1), number_or(*rope, "mscale_all_dim", 0));
  return scale * scale;
}

}  // namespace rlx
