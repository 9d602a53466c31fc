// Jamba: selective state spaces, normalised inside, with a layer of attention without positions now and then; mixtures in some layers.
#include "models/config_field.h"
#include "models/decoder_family.h"
#include "models/families/mamba.h"
#include "models/families/mixture.h"
#include "models/model_folder.h"

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

const DecoderFamily jamba_family({"jamba"}, read_jamba, jamba_names);

}  // namespace
}  // namespace rlx
