#include "models/t5.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/config_field.h"
#include "models/model_folder.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// Which of the buckets a distance (key minus query) falls into. Computed in f32, as the models were trained with it.
std::int32_t bucket_of(const T5Config& c, std::int64_t distance, bool both_sides) {
  const std::int64_t buckets = both_sides ? c.buckets / 2 : c.buckets, exact = buckets / 2;
  const std::int64_t away = both_sides ? std::abs(distance) : std::max<std::int64_t>(-distance, 0);
  const std::int64_t first = both_sides && distance > 0 ? buckets : 0;
  if (away < exact) return static_cast<std::int32_t>(first + away);
  const auto range = static_cast<float>(std::log(static_cast<double>(c.max_distance) / static_cast<double>(exact)));
  const float place = std::log(static_cast<float>(away) / static_cast<float>(exact)) / range * static_cast<float>(buckets - exact);
  return static_cast<std::int32_t>(first + std::min(exact + static_cast<std::int64_t>(place), buckets - 1));
}

/// The learned bias of each head for each pair of positions of one stack: (1, heads, S, S).
Value position_bias(Flow stack, const T5Config& c, Value near, const Dim& length, bool both_sides) {
  std::vector<std::int32_t> table;  // all distances from max_distance on share a bucket
  for (std::int64_t d = -c.max_distance; d <= c.max_distance; ++d) table.push_back(bucket_of(c, d, both_sides));
  Value buckets = stack.graph().constant(Array::of<std::int32_t>({static_cast<std::int64_t>(table.size())}, table));
  Value distance = iota(near, {1, length}, i32, 1) - iota(near, {length, 1}, i32, 0);
  const auto limit = static_cast<double>(c.max_distance);
  distance = min(max(distance, scalar(near, -limit, i32)), scalar(near, limit, i32)) + limit;
  Flow first = stack.scope("block.0.layer.0.SelfAttention");
  Value bias = first.embedding("relative_attention_bias", take(buckets, distance), c.buckets, c.num_heads);  // (S, S, heads)
  return reshape(transpose(bias, {2, 0, 1}), {1, c.num_heads, length, length});
}

Value t5_norm(Flow flow, const T5Config& c, std::string_view name, Value x) {
  return rms_norm(x, flow.scope(name).param("weight", {c.d_model}), {-1}, c.layer_norm_epsilon);
}

/// Queries from x (B, T, d_model), keys and values from `source` (B, S, d_model).
Value t5_attention(Flow flow, const T5Config& c, Value x, Value source, AttentionOptions options) {
  const std::int64_t inner = c.num_heads * c.d_kv;
  const auto heads = [&](std::string_view name, Value from) {
    return transpose(reshape(flow.linear(name, from, inner, false), {from.dim(0), from.dim(1), c.num_heads, c.d_kv}), {0, 2, 1, 3});
  };
  options.scale = 1;
  Value mixed = transpose(attention(heads("q", x), heads("k", source), heads("v", source), options), {0, 2, 1, 3});
  return flow.linear("o", reshape(mixed, {x.dim(0), x.dim(1), inner}), c.d_model, false);
}

Value t5_feed_forward(Flow flow, const T5Config& c, Value x) {
  Value inner = c.gated ? activate(c.activation, flow.linear("wi_0", x, c.d_ff, false)) * flow.linear("wi_1", x, c.d_ff, false)
                        : activate(c.activation, flow.linear("wi", x, c.d_ff, false));
  return flow.linear("wo", inner, c.d_model, false);
}

/// What the layers of one stack share; a decoder's also read what the encoder gave.
struct T5Stack {
  AttentionOptions self, cross;
  Value encoded;  // null in the encoder
};

Value t5_block(Flow block, const T5Config& c, const T5Stack& stack, Value x) {
  int next = 0;
  const auto layer = [&](auto body) {
    Flow flow = block.scope(fmt::format("layer.{}", next++));
    x = x + body(flow, t5_norm(flow, c, "layer_norm", x));
  };
  layer([&](Flow flow, Value y) { return t5_attention(flow.scope("SelfAttention"), c, y, y, stack.self); });
  if (stack.encoded)
    layer([&](Flow flow, Value y) { return t5_attention(flow.scope("EncDecAttention"), c, y, stack.encoded, stack.cross); });
  layer([&](Flow flow, Value y) { return t5_feed_forward(flow.scope("DenseReluDense"), c, y); });
  return x;
}

/// The states after the embeddings and after each block, the last normalised.
Values t5_states(Flow flow, const T5Config& c, const T5Stack& stack, std::int64_t layers, Value embedded) {
  Values states{embedded};
  for (std::int64_t i = 0; i < layers; ++i) states.push_back(t5_block(flow.scope(fmt::format("block.{}", i)), c, stack, states.back()));
  states.back() = t5_norm(flow, c, "final_layer_norm", states.back());
  return states;
}

Value t5_logits(Flow flow, const T5Config& c, const StoredMatrix& table, Value x) {
  if (!c.tied_output) return flow.linear("lm_head", x, c.vocab_size, false);
  return product(x * (1 / std::sqrt(static_cast<double>(c.d_model))), table);
}

}  // namespace

T5Config T5Config::read(const JsonField& config) {
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
  c.layer_norm_epsilon = number_or(config, "layer_norm_epsilon", 1e-6);
  const std::size_t kind = config.at("feed_forward_proj").as_one_of({"relu", "gated-gelu", "gelu", "gated-silu", "silu"});
  c.gated = kind == 1 || kind == 3;
  c.activation = kind == 0 ? HiddenActivation::relu : kind <= 2 ? HiddenActivation::gelu_tanh : HiddenActivation::silu;
  if (kind == 2) c.activation = HiddenActivation::gelu;
  c.tied_output = flag_or(config, "tie_word_embeddings", true);
  return c;
}

Graph t5_graph(const T5Config& c, const T5GraphSizes& sizes, WeightStorage storage) {
  Graph graph("t5");
  const Dim batch = Dim::symbol("B", sizes.batch), length = Dim::symbol("S", sizes.length), target = Dim::symbol("T", sizes.decoder_length);
  Value ids = graph.input("input_ids", {batch, length}, i32), mask = graph.input("attention_mask", {batch, length}, i32);
  Value target_ids = graph.input("decoder_input_ids", {batch, target}, i32);
  Flow flow(graph, f32, std::move(storage)), encoder = flow.scope("encoder"), decoder = flow.scope("decoder");
  const StoredMatrix table = flow.scope("shared").matrix("weight", c.vocab_size, c.d_model);
  Value attended = reshape(ne(mask, scalar(mask, 0, i32)), {batch, 1, 1, length});
  T5Stack reading, writing;
  reading.self.mask = writing.cross.mask = attended;
  reading.self.bias = position_bias(encoder, c, ids, length, true);
  writing.self.causal = true;
  writing.self.bias = position_bias(decoder, c, ids, target, false);
  writing.encoded = t5_states(encoder, c, reading, c.num_layers, rows_of(table, ids)).back();
  const Values states = t5_states(decoder, c, writing, c.num_decoder_layers, rows_of(table, target_ids));
  graph.output("logits", t5_logits(flow, c, table, states.back()));
  graph.output("encoder_last_hidden_state", writing.encoded);
  Values first;
  for (Value state : states) first.push_back(slice_axis(state, 0, 0, 1));
  graph.output("hidden_states_row0", concat(first, 0));
  return graph;
}

WeightNames t5_weight_names() {
  return {.unused = {"encoder.embed_tokens", "decoder.embed_tokens", "lm_head",
                     "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias"}};
}

}  // namespace rlx
