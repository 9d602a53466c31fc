// Jamba: selective state spaces, normalised inside, with a layer of attention without positions now and then; mixtures in some layers.
#include <algorithm>
#include <utility>

#include "models/config/config_field.h"
#include "models/families/decoder_family.h"
#include "models/families/mixture.h"
#include "models/families/recurrent/mamba.h"

namespace rlx {
namespace {

/// Of a layer's kinds, one comes every so many layers.
bool is_at_turn(const JsonField& config, std::string_view kind, std::size_t layer, std::int64_t period, std::int64_t offset) {
  const auto every = static_cast<std::size_t>(size_or(config, fmt::format("{}_layer_period", kind), period));
  const auto first = static_cast<std::size_t>(count_or(config, fmt::format("{}_layer_offset", kind), offset));
  return layer % every == first;
}

void read_jamba_layers(const JsonField& config, DecoderConfig& c) {
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    c.layers[i].rope = -1;
    c.layers[i].mixer = is_at_turn(config, "attn", i, 8, 4) ? Mixer::attention : Mixer::state_space;
    c.layers[i].experts = c.experts.count > 1 && is_at_turn(config, "expert", i, 2, 1);
  }
}

DecoderConfig read_jamba(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.experts = {.count = size_or(config, "num_experts", 16), .chosen = size_or(config, "num_experts_per_tok", 2), .width = c.ffn_size};
  if (c.experts.count > 1) check_experts(config, c.experts);
  read_jamba_layers(config, c);
  StateSpaceConfig& s = c.state_space;
  s.width = size_or(config, "mamba_expand", 2) * c.hidden_size;
  s.states = 16;
  if (const auto states = config.find("mamba_d_state")) s.states = part_size(*states);
  s.step_rank = read_step_rank(config, "mamba_dt_rank", c.hidden_size);
  if (const auto kernel = config.find("mamba_d_conv")) s.kernel = static_cast<std::int64_t>(kernel->as_integer(2, 64));
  s.bias = flag_or(config, "mamba_proj_bias", false), s.convolution_bias = flag_or(config, "mamba_conv_bias", true);
  s.norm = c.norm;
  return c;
}

WeightNames jamba_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.whole.push_back({{"output_norm"}, "final_layernorm"});
  for (const WeightName& line : std::vector<WeightName>{{{"state_space.input", "state_space.gate"}, "mamba.in_proj"},
                                                        {{"state_space.convolution"}, "mamba.conv1d"},
                                                        {{"state_space.step_input", "state_space.b", "state_space.c"}, "mamba.x_proj"},
                                                        {{"state_space.step_norm"}, "mamba.dt_layernorm"},
                                                        {{"state_space.b_norm"}, "mamba.b_layernorm"},
                                                        {{"state_space.c_norm"}, "mamba.c_layernorm"},
                                                        {{"state_space.step"}, "mamba.dt_proj"},
                                                        {{"state_space.log_decay"}, "mamba.A_log"},
                                                        {{"state_space.skip"}, "mamba.D"},
                                                        {{"state_space.output"}, "mamba.out_proj"},
                                                        {{"ffn_norm"}, "pre_ff_layernorm"},
                                                        {{"ffn.gate"}, "feed_forward.gate_proj"},
                                                        {{"ffn.up"}, "feed_forward.up_proj"},
                                                        {{"ffn.down"}, "feed_forward.down_proj"},
                                                        {{"experts.router"}, "feed_forward.router"},
                                                        {{"experts.gate"}, "feed_forward.experts.{e}.gate_proj"},
                                                        {{"experts.up"}, "feed_forward.experts.{e}.up_proj"},
                                                        {{"experts.down"}, "feed_forward.experts.{e}.down_proj"}})
    names.layer.push_back(line);
  return names;
}

/// The first layer of a kind, and after how many layers the next one comes; the whole model where there is none.
std::pair<std::int64_t, std::int64_t> turn_of(const std::vector<DecoderLayer>& layers, bool (*is)(const DecoderLayer& layer)) {
  const auto first = std::find_if(layers.begin(), layers.end(), is);
  if (first == layers.end()) return {0, std::ssize(layers) + 1};
  const auto next = std::find_if(first + 1, layers.end(), is);
  return {first - layers.begin(), next == layers.end() ? std::ssize(layers) : next - first};
}

json::Value write_jamba(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  const StateSpaceConfig& s = c.state_space;
  out["mamba_expand"] = s.width / c.hidden_size;
  out["mamba_d_state"] = s.states, out["mamba_dt_rank"] = s.step_rank, out["mamba_d_conv"] = s.kernel;
  out["mamba_proj_bias"] = s.bias, out["mamba_conv_bias"] = s.convolution_bias;
  const auto [attention, attention_period] = turn_of(c.layers, [](const DecoderLayer& layer) { return layer.mixer == Mixer::attention; });
  out["attn_layer_offset"] = attention, out["attn_layer_period"] = attention_period;
  const auto [experts, expert_period] = turn_of(c.layers, [](const DecoderLayer& layer) { return layer.experts; });
  out["expert_layer_offset"] = experts, out["expert_layer_period"] = expert_period;
  out["num_experts"] = std::max<std::int64_t>(c.experts.count, 1), out["num_experts_per_tok"] = std::max<std::int64_t>(c.experts.chosen, 1);
  return out;
}

const DecoderFamily jamba_family({"jamba"}, read_jamba, jamba_names, write_jamba);

}  // namespace
}  // namespace rlx
