#include "models/config/t5_config.h"

#include "models/config/class_defaults.h"
#include "models/config/config_field.h"

namespace rlx {
namespace {

/// The name of an activation, of blocks with a gate behind `gated-`. (gated-gelu is what it has always been, by tanh.)
void read_feed_forward(const JsonField& field, T5Config& c) {
  constexpr std::string_view gate = "gated-";
  const std::string text = field.as_string();
  c.gated = text.starts_with(gate);
  c.activation = read_activation(field, std::string_view(text).substr(c.gated ? gate.size() : 0));
  if (c.gated && c.activation == HiddenActivation::gelu) c.activation = HiddenActivation::gelu_tanh;
}

/// The same as transformers writes it besides, which counts there.
void read_feed_forward_parts(const JsonField& config, T5Config& c) {
  c.gated = flag_or(config, "is_gated_act", c.gated);
  if (const auto activation = config.find("dense_act_fn")) c.activation = read_activation(*activation);
}

T5Config read_whole(const JsonField& config) {
  constexpr std::uint64_t most_layers = 1024;
  T5Config c;
  c.vocab_size = as_size(config.at("vocab_size"));
  c.d_model = as_size(config.at("d_model")), c.d_kv = as_size(config.at("d_kv")), c.d_ff = as_size(config.at("d_ff"));
  c.num_heads = as_size(config.at("num_heads"));
  c.num_layers = static_cast<std::int64_t>(config.at("num_layers").as_integer(1, most_layers));
  const auto decoder_layers = config.find("num_decoder_layers");
  c.num_decoder_layers = decoder_layers ? static_cast<std::int64_t>(decoder_layers->as_integer(1, most_layers)) : c.num_layers;
  c.buckets = static_cast<std::int64_t>(config.at("relative_attention_num_buckets").as_integer(4, 1 << 16));
  const auto distance = config.find("relative_attention_max_distance");
  if (distance) c.max_distance = static_cast<std::int64_t>(distance->as_integer(static_cast<std::uint64_t>(c.buckets / 2 + 1), 1 << 20));
  c.layer_norm_epsilon = non_negative_or(config, "layer_norm_epsilon", 1e-6);
  read_feed_forward(config.at("feed_forward_proj"), c);
  read_feed_forward_parts(config, c);
  // transformers 5 always writes the first as true, and says by the second what it was.
  c.tied_head = flag_or(config, "tie_word_embeddings", true);
  c.tied_output = c.tied_head && flag_or(config, "scale_decoder_outputs", true);
  c.n_positions = size_or(config, "n_positions", c.n_positions);
  auto start = config.find("decoder_start_token_id");
  if (!start) start = config.find("pad_token_id");
  if (start) c.decoder_start_token_id = static_cast<std::int32_t>(start->as_integer(0, static_cast<std::uint64_t>(c.vocab_size - 1)));
  return c;
}

}  // namespace

T5Config T5Config::read(const JsonField& config) {
  const json::Value whole = over_class_defaults(config.value(), "t5");
  return read_whole(JsonField(whole, config.place()));
}

}  // namespace rlx
