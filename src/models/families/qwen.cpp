// Qwen 2 and 3: biases on queries, keys and values, later a norm for each of their heads; the upper layers may slide. The MoE models of
// both have a mixture in (some of) the layers.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"
#include "models/families/mixture.h"

namespace rlx {
namespace {

/// Layers slide from number `max_window_layers` on; all of them where there is no such field.
DecoderConfig read_qwen(const JsonField& config, bool has_max_window_layers = true) {
  DecoderConfig c = read_llama(config);
  c.ropes = {read_rope(config, c.head_size)};
  if (!flag_or(config, "use_sliding_window", false)) return c;
  const auto full = static_cast<std::size_t>(has_max_window_layers ? count_or(config, "max_window_layers", 28) : 0);
  read_windows(config, c, [&](std::size_t layer) { return layer >= full; });
  return c;
}

DecoderConfig read_qwen2(const JsonField& config) {
  DecoderConfig c = read_qwen(config);
  c.qkv_bias = true, c.attention_output_bias = false;
  return c;
}

DecoderConfig read_qwen3(const JsonField& config, bool has_max_window_layers = true) {
  DecoderConfig c = read_qwen(config, has_max_window_layers);
  c.query_key_norm = QueryKeyNorm::head;
  return c;
}

json::Value write_qwen(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  write_rope(c, out);
  write_windows(c, out);
  if (widest_window(c) > 0) out["use_sliding_window"] = true;
  if (c.experts.count > 0) write_sparse_layers(c, out);
  return out;
}

const DecoderFamily qwen2_family({"qwen2"}, read_qwen2, llama_names, write_qwen);
const DecoderFamily qwen3_family({"qwen3"}, [](const JsonField& config) { return read_qwen3(config); }, llama_names, write_qwen);
const DecoderFamily qwen2_moe_family(
    {"qwen2_moe"},
    [](const JsonField& config) {
      DecoderConfig c = read_qwen2(config);
      read_sparse_layers(config, c);
      c.experts.shared_width = size_or(config, "shared_expert_intermediate_size", 5632);
      c.experts.shared_gate = true;
      c.qkv_bias = flag_or(config, "qkv_bias", true);
      return c;
    },
    mixture_names,
    [](const DecoderConfig& c) {
      json::Value out = write_qwen(c);
      out["qkv_bias"] = c.qkv_bias;
      return out;
    });
const DecoderFamily qwen3_moe_family(
    {"qwen3_moe"},
    [](const JsonField& config) {
      DecoderConfig c = read_qwen3(config, false);  // some configs bring max_window_layers all the same
      read_sparse_layers(config, c);
      return c;
    },
    mixture_names, write_qwen);

}  // namespace
}  // namespace rlx
