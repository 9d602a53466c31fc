// Mixtral: Mistral with a mixture of experts in every layer.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/families/mixture.h"

namespace rlx {
namespace {

WeightNames mixtral_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.layer.push_back({{"experts.router"}, "block_sparse_moe.gate"});
  names.layer.push_back({{"experts.gate"}, "block_sparse_moe.experts.{e}.w1"});
  names.layer.push_back({{"experts.down"}, "block_sparse_moe.experts.{e}.w2"});
  names.layer.push_back({{"experts.up"}, "block_sparse_moe.experts.{e}.w3"});
  return names;
}

json::Value write_mixtral(const DecoderConfig& c) {
  json::Value out = write_llama(c);
  out["num_local_experts"] = c.experts.count;
  out["num_experts_per_tok"] = c.experts.chosen;
  return out;
}

const DecoderFamily mixtral_family(
    {"mixtral"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      c.ropes = {read_rope(config, c.head_size)};
      read_windows(config, c, [](std::size_t) { return true; });
      c.experts = {.count = expert_count(config, "num_local_experts"),
                   .chosen = as_size(config.at("num_experts_per_tok")),
                   .width = c.ffn_size,
                   .normalize = true};
      check_experts(config, c.experts);
      for (DecoderLayer& layer : c.layers) layer.experts = true;
      return c;
    },
    mixtral_names, write_mixtral);

}  // namespace
}  // namespace rlx
