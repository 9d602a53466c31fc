// Mamba: nothing but selective state spaces. Falcon's normalises what a token says about them.
#include "models/families/recurrent/mamba.h"

#include <cmath>

#include "models/config/config_field.h"
#include "models/families/decoder_family.h"

namespace rlx {
namespace {

constexpr std::int64_t mamba_positions = 1 << 20;  // its state has no length; a cache of this many tokens takes no memory

/// Infinity is spelled in several ways, none of which is a finite number.
double limit_or(const JsonField& limit, double otherwise) {
  return limit.value().is_number() && std::isfinite(limit.value().get<double>()) ? limit.as_number() : otherwise;
}

}  // namespace

std::int64_t part_size(const JsonField& field) { return static_cast<std::int64_t>(field.as_integer(1, 65536)); }

std::int64_t read_step_rank(const JsonField& config, std::string_view name, std::int64_t hidden_size) {
  const auto rank = config.find(name);
  return rank && rank->value().is_number() ? as_size(*rank) : (hidden_size + 15) / 16;  // or "auto"
}

void read_step_limits(const JsonField& config, StateSpaceConfig& s) {
  const auto limits = config.find("time_step_limit");
  if (!limits) return;
  const auto items = limits->items();
  if (items.size() != 2) limits->refuse("{} numbers (allowed: 2)", items.size());
  s.least_step = limit_or(items[0], 0), s.largest_step = limit_or(items[1], s.largest_step);
  if (!(s.least_step <= s.largest_step)) limits->refuse("{} to {} is no range", s.least_step, s.largest_step);
}

DecoderConfig read_mamba_base(const JsonField& config, Mixer mixer) {
  DecoderConfig c;
  c.vocab_size = as_size(config.at("vocab_size"));
  c.hidden_size = as_size(config.at("hidden_size"));
  c.max_positions = mamba_positions;
  c.layers.resize(static_cast<std::size_t>(config.at("num_hidden_layers").as_integer(1, 1024)));
  for (DecoderLayer& layer : c.layers) layer.mixer = mixer, layer.feed_forward = false, layer.rope = -1;
  c.norm.eps = non_negative_or(config, "layer_norm_epsilon", 1e-5);
  if (const auto act = config.find("hidden_act")) c.activation = read_activation(*act);
  StateSpaceConfig& s = c.state_space;
  s.states = part_size(config.at("state_size"));
  s.kernel = static_cast<std::int64_t>(config.at("conv_kernel").as_integer(2, 64));
  s.bias = flag_or(config, "use_bias", false), s.convolution_bias = flag_or(config, "use_conv_bias", true);
  return c;
}

json::Value state_space_fields(const DecoderConfig& c) {
  const StateSpaceConfig& s = c.state_space;
  return {{"vocab_size", c.vocab_size},
          {"hidden_size", c.hidden_size},
          {"intermediate_size", s.width},
          {"expand", s.width / c.hidden_size},
          {"num_hidden_layers", c.layers.size()},
          {"state_size", s.states},
          {"conv_kernel", s.kernel},
          {"use_bias", s.bias},
          {"use_conv_bias", s.convolution_bias},
          {"hidden_act", activation_name(c.activation)},
          {"layer_norm_epsilon", c.norm.eps},
          {"tie_word_embeddings", c.tied_output}};
}

WeightNames mamba_names(const DecoderConfig& config) {
  WeightNames names{.prefix = "backbone.",
                    .whole = {{{"token_embedding"}, "embeddings"}, {{"output_norm"}, "norm_f"}, {{"output"}, "lm_head"}},
                    .layer = {{{"attention_norm"}, "norm"},
                              {{"state_space.input", "state_space.gate"}, "mixer.in_proj"},
                              {{"state_space.convolution"}, "mixer.conv1d"},
                              {{"state_space.step_input", "state_space.b", "state_space.c"}, "mixer.x_proj"},
                              {{"state_space.step"}, "mixer.dt_proj"},
                              {{"state_space.log_decay"}, "mixer.A_log"},
                              {{"state_space.skip"}, "mixer.D"},
                              {{"state_space.output"}, "mixer.out_proj"}}};
  if (config.tied_output) names.unused.push_back("lm_head");
  return names;
}

namespace {

DecoderConfig read_mamba(const JsonField& config) {
  DecoderConfig c = read_mamba_base(config, Mixer::state_space);
  c.state_space.width = size_or(config, "intermediate_size", size_or(config, "expand", 2) * c.hidden_size);
  c.state_space.step_rank = read_step_rank(config, "time_step_rank", c.hidden_size);
  c.tied_output = flag_or(config, "tie_word_embeddings", true);
  return c;
}

json::Value write_mamba(const DecoderConfig& c) {
  json::Value out = state_space_fields(c);
  out["time_step_rank"] = c.state_space.step_rank;
  if (c.state_space.norm) out["mixer_rms_eps"] = c.state_space.norm->eps;
  return out;
}

const DecoderFamily mamba_family({"mamba"}, read_mamba, mamba_names, write_mamba);
const DecoderFamily falcon_mamba_family(
    {"falcon_mamba"},
    [](const JsonField& config) {
      DecoderConfig c = read_mamba(config);
      c.state_space.norm = NormKind{.weight = false, .eps = non_negative_or(config, "mixer_rms_eps", 1e-6)};
      return c;
    },
    mamba_names, write_mamba);

}  // namespace
}  // namespace rlx
