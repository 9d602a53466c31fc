// Qwen3-Next: three gated delta nets for each layer of gated attention, part of whose heads turns; mixtures with a shared expert.
// Qwen 3.5: the same with one feed-forward block, and what delta nets read in tensors of their own.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/mixture.h"
#include "models/families/text_part.h"

namespace rlx {
namespace {

void read_mixers(const JsonField& config, DecoderConfig& c) {
  const auto types = config.find("layer_types");
  const auto interval = static_cast<std::size_t>(size_or(config, "full_attention_interval", 4));
  const auto items = types ? types->items() : std::vector<JsonField>();
  if (types && items.size() != c.layers.size()) types->refuse("{} entries for {} layers", items.size(), c.layers.size());
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const bool full = types ? items[i].as_one_of({"full_attention", "linear_attention"}) == 0 : (i + 1) % interval == 0;
    c.layers[i].mixer = full ? Mixer::attention : Mixer::delta_net;
  }
}

void read_delta_net(const JsonField& config, DeltaNetConfig& d) {
  d.key_heads = as_size(config.at("linear_num_key_heads"));
  d.value_heads = as_size(config.at("linear_num_value_heads"));
  d.key_size = as_size(config.at("linear_key_head_dim"));
  d.value_size = as_size(config.at("linear_value_head_dim"));
  d.kernel = static_cast<std::int64_t>(config.at("linear_conv_kernel_dim").as_integer(2, 64));
  if (d.value_heads % d.key_heads != 0)
    config.at("linear_num_key_heads").refuse("{} do not divide {} value heads", d.key_heads, d.value_heads);
}

DecoderConfig read_qwen3_5(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.norm.plus_one = true;
  c.query_key_norm = QueryKeyNorm::head;
  c.attention_gate = true;
  c.ropes = {read_rope(config, c.head_size)};
  read_mixers(config, c);
  read_delta_net(config, c.delta_net);
  return c;
}

DecoderConfig read_qwen3_next(const JsonField& config) {
  DecoderConfig c = read_qwen3_5(config);
  read_sparse_layers(config, c);
  c.experts.shared_width = as_size(config.at("shared_expert_intermediate_size"));
  c.experts.shared_gate = true;
  return c;
}

WeightNames qwen3_5_names(const DecoderConfig& config) {
  WeightNames names = mixture_names(config);
  for (const WeightName& line : std::vector<WeightName>{{{"attention.q", "attention.gate"}, "self_attn.q_proj", config.heads},
                                                        {{"delta_net.q", "delta_net.k", "delta_net.v"}, "linear_attn.in_proj_qkv"},
                                                        {{"delta_net.gate"}, "linear_attn.in_proj_z"},
                                                        {{"delta_net.beta"}, "linear_attn.in_proj_b"},
                                                        {{"delta_net.decay"}, "linear_attn.in_proj_a"},
                                                        {{"delta_net.convolution"}, "linear_attn.conv1d"},
                                                        {{"delta_net.log_decay"}, "linear_attn.A_log"},
                                                        {{"delta_net.decay_bias"}, "linear_attn.dt_bias"},
                                                        {{"delta_net.norm"}, "linear_attn.norm"},
                                                        {{"delta_net.output"}, "linear_attn.out_proj"}})
    names.layer.push_back(line);
  names.unused.push_back("mtp");  // predicts several tokens at a time
  return names;
}

WeightNames qwen3_next_names(const DecoderConfig& config) {
  WeightNames names = qwen3_5_names(config);
  const std::int64_t groups = config.delta_net.key_heads;
  names.layer.push_back({{"delta_net.q", "delta_net.k", "delta_net.v", "delta_net.gate"}, "linear_attn.in_proj_qkvz", groups});
  names.layer.push_back({{"delta_net.beta", "delta_net.decay"}, "linear_attn.in_proj_ba", groups});
  return names;
}

json::Value write_qwen3_5(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  const DeltaNetConfig& d = c.delta_net;
  write_rope(c, out);
  out["attention_bias"] = c.qkv_bias;
  out["linear_num_key_heads"] = d.key_heads, out["linear_num_value_heads"] = d.value_heads;
  out["linear_key_head_dim"] = d.key_size, out["linear_value_head_dim"] = d.value_size;
  out["linear_conv_kernel_dim"] = d.kernel;
  for (const DecoderLayer& layer : c.layers)
    out["layer_types"].push_back(layer.mixer == Mixer::delta_net ? "linear_attention" : "full_attention");
  if (c.experts.count > 0) write_sparse_layers(c, out);
  return out;
}

const DecoderFamily qwen3_5_vision_family(
    {"qwen3_5"}, [](const JsonField& config) { return read_text_part(config, "qwen3_5_text", read_qwen3_5); },
    [](const DecoderConfig& config) { return text_part_names(qwen3_5_names(config), "model.language_model."); });
const DecoderFamily qwen3_5_family({"qwen3_5_text"}, read_qwen3_5, qwen3_5_names, write_qwen3_5);
const DecoderFamily qwen3_next_family({"qwen3_next"}, read_qwen3_next, qwen3_next_names, write_qwen3_5);

}  // namespace
}  // namespace rlx
