// LFM2: gated convolutions over a few tokens, with a layer of attention here and there; the larger ones have mixtures, whose experts are
// chosen by sigmoids with a bias.
#include <algorithm>

#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/mixture.h"

namespace rlx {
namespace {

void read_lfm2_mixers(const JsonField& config, DecoderConfig& c) {
  const auto types = config.find("layer_types"), full = config.find("full_attn_idxs");
  const auto items = types ? types->items() : std::vector<JsonField>();
  if (types && items.size() != c.layers.size()) types->refuse("{} entries for {} layers", items.size(), c.layers.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].as_one_of({"full_attention", "conv"}) == 1) c.layers[i].mixer = Mixer::short_convolution;
  if (types || !full) return;
  for (DecoderLayer& layer : c.layers) layer.mixer = Mixer::short_convolution;
  for (const JsonField& layer : full->items()) c.layers[layer.as_integer(0, c.layers.size() - 1)].mixer = Mixer::attention;
}

DecoderConfig read_lfm2_base(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.norm.eps = non_negative_or(config, "norm_eps", 1e-5);
  c.query_key_norm = QueryKeyNorm::head;
  c.short_convolution = {.kernel = static_cast<std::int64_t>(config.at("conv_L_cache").as_integer(2, 64)),
                         .bias = flag_or(config, "conv_bias", false)};
  c.tied_output = flag_or(config, "tie_embedding", flag_or(config, "tie_word_embeddings", true));
  c.ropes = {read_rope(config, c.head_size)};
  read_lfm2_mixers(config, c);
  return c;
}

/// Two thirds of the size that the config gives, times a factor, rounded up to whole blocks.
std::int64_t adjusted_width(const JsonField& config, std::int64_t width) {
  if (!flag_or(config, "block_auto_adjust_ff_dim", true)) return width;
  const auto factor = config.find("block_ffn_dim_multiplier");
  const std::int64_t two_thirds = 2 * width / 3;
  const auto scaled = static_cast<std::int64_t>((factor ? as_number(*factor, 1e-3, 1e3) : 1) * static_cast<double>(two_thirds));
  const std::int64_t block = size_or(config, "block_multiple_of", 256);
  return (scaled + block - 1) / block * block;
}

DecoderConfig read_lfm2(const JsonField& config) {
  DecoderConfig c = read_lfm2_base(config);
  c.ffn_size = adjusted_width(config, size_or(config, "block_ff_dim", c.ffn_size));
  return c;
}

DecoderConfig read_lfm2_moe(const JsonField& config) {
  DecoderConfig c = read_lfm2_base(config);
  read_sparse_layers(config, c);
  c.experts.sigmoid = true;
  c.experts.router_bias = flag_or(config, "use_expert_bias", true);
  c.experts.scale = number_or(config, "routed_scaling_factor", 1);
  const auto dense = static_cast<std::size_t>(count_or(config, "num_dense_layers", 2));
  for (std::size_t i = 0; i < c.layers.size(); ++i) c.layers[i].experts = i >= dense;
  return c;
}

WeightNames lfm2_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.whole.push_back({{"output_norm"}, "embedding_norm"});
  for (const WeightName& line :
       std::vector<WeightName>{{{"attention_norm"}, "operator_norm"},
                               {{"attention.output"}, "self_attn.out_proj"},
                               {{"attention.q_norm"}, "self_attn.q_layernorm"},
                               {{"attention.k_norm"}, "self_attn.k_layernorm"},
                               {{"short_convolution.before", "short_convolution.after", "short_convolution.input"}, "conv.in_proj"},
                               {{"short_convolution.kernel"}, "conv.conv"},
                               {{"short_convolution.output"}, "conv.out_proj"},
                               {{"ffn_norm"}, "ffn_norm"},
                               {{"ffn.gate"}, "feed_forward.w1"},
                               {{"ffn.up"}, "feed_forward.w3"},
                               {{"ffn.down"}, "feed_forward.w2"},
                               {{"experts.router"}, "feed_forward.gate"},
                               {{"experts.router_bias"}, "feed_forward.expert_bias"},
                               {{"experts.gate"}, "feed_forward.experts.{e}.w1"},
                               {{"experts.up"}, "feed_forward.experts.{e}.w3"},
                               {{"experts.down"}, "feed_forward.experts.{e}.w2"}})
    names.layer.push_back(line);
  return names;
}

json::Value write_lfm2(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  write_rope(c, out);
  out["norm_eps"] = c.norm.eps;
  out["conv_L_cache"] = c.short_convolution.kernel, out["conv_bias"] = c.short_convolution.bias;
  out["block_auto_adjust_ff_dim"] = false;
  for (const DecoderLayer& layer : c.layers)
    out["layer_types"].push_back(layer.mixer == Mixer::short_convolution ? "conv" : "full_attention");
  const ExpertsConfig& e = c.experts;
  if (e.count == 0) return out;
  out["num_experts"] = e.count, out["num_experts_per_tok"] = e.chosen, out["moe_intermediate_size"] = e.width;
  out["norm_topk_prob"] = e.normalize, out["use_expert_bias"] = e.router_bias, out["routed_scaling_factor"] = e.scale;
  out["num_dense_layers"] = std::ranges::find(c.layers, true, &DecoderLayer::experts) - c.layers.begin();
  return out;
}

const DecoderFamily lfm2_family({"lfm2"}, read_lfm2, lfm2_names, write_lfm2);
const DecoderFamily lfm2_moe_family({"lfm2_moe"}, read_lfm2_moe, lfm2_names, write_lfm2);

}  // namespace
}  // namespace rlx
