// Phi 3 and 4: Llama with one tensor for queries, keys and values and one for both halves of the feed-forward block; part of a head turns.
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

WeightNames phi3_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.layer.push_back({{"attention.q", "attention.k", "attention.v"}, "self_attn.qkv_proj"});
  names.layer.push_back({{"ffn.gate", "ffn.up"}, "mlp.gate_up_proj"});
  return names;
}

json::Value write_phi3(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  write_rope(c, out);
  out["sliding_window"] = widest_window(c) > 0 ? json::Value(widest_window(c)) : json::Value();
  return out;
}

const DecoderFamily phi3_family(
    {"phi3"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      c.ropes = {read_rope(config, c.head_size)};
      read_windows(config, c, [](std::size_t) { return true; });
      return c;
    },
    phi3_names, write_phi3);

}  // namespace
}  // namespace rlx
