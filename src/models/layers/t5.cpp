#include "models/layers/t5.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "models/layers/activation.h"
#include "ops/nn/rounded_attention.h"
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

/// The learned bias of each head of one stack for queries at these positions, (T), and `length` keys: (1, heads, T, length).
Value position_bias(Flow stack, const T5Config& c, Value positions, const Dim& length, bool both_sides) {
  std::vector<std::int32_t> table;  // all distances from max_distance on share a bucket
  for (std::int64_t d = -c.max_distance; d <= c.max_distance; ++d) table.push_back(bucket_of(c, d, both_sides));
  Value buckets = stack.graph().constant(Array::of<std::int32_t>({static_cast<std::int64_t>(table.size())}, table));
  Value distance = iota(positions, {1, length}, i32, 1) - reshape(positions, {positions.dim(0), 1});
  const auto limit = static_cast<double>(c.max_distance);
  distance = min(max(distance, scalar(positions, -limit, i32)), scalar(positions, limit, i32)) + limit;
  Flow first = stack.scope("block.0.layer.0.SelfAttention");
  Value bias = first.embedding("relative_attention_bias", take(buckets, distance), c.buckets, c.num_heads);  // (T, length, heads)
  return reshape(transpose(bias, {2, 0, 1}), {1, c.num_heads, positions.dim(0), length});
}

Value t5_norm(Flow flow, const T5Config& c, std::string_view name, Value x) {
  return rms_norm(x, flow.scope(name).param("weight", {c.d_model}), {-1}, c.layer_norm_epsilon);
}

/// x (B, S, d_model) -> (B, num_heads, S, d_kv).
Value t5_heads(Flow flow, const T5Config& c, std::string_view name, Value x) {
  Value features = flow.linear(name, x, c.num_heads * c.d_kv, false);
  return transpose(reshape(features, {x.dim(0), x.dim(1), c.num_heads, c.d_kv}), {0, 2, 1, 3});
}

/// What queries look at, (B, num_heads, S, d_kv) each.
struct Seen {
  Value keys, values;
  bool kept = false;  // from run to run: a token sees the same among few and among many, and they are not rounded again for each
};

Seen seen_in(Flow attention, const T5Config& c, Value x) { return {t5_heads(attention, c, "k", x), t5_heads(attention, c, "v", x)}; }

Value t5_attention(Flow flow, const T5Config& c, Value x, const Seen& seen, AttentionOptions options) {
  options.scale = 1;
  Value q = t5_heads(flow, c, "q", x);
  Value mixed = seen.kept ? exact_attention(q, seen.keys, seen.values, options) : attention(q, seen.keys, seen.values, options);
  mixed = transpose(mixed, {0, 2, 1, 3});
  return flow.linear("o", reshape(mixed, {x.dim(0), x.dim(1), c.num_heads * c.d_kv}), c.d_model, false);
}

Value t5_feed_forward(Flow flow, const T5Config& c, Value x) {
  Value inner = c.gated ? activate(c.activation, flow.linear("wi_0", x, c.d_ff, false)) * flow.linear("wi_1", x, c.d_ff, false)
                        : activate(c.activation, flow.linear("wi", x, c.d_ff, false));
  return flow.linear("wo", inner, c.d_model, false);
}

/// What the layers of one stack share; a decoder's also read what the encoder gave.
struct T5Stack {
  AttentionOptions self, cross;
  std::function<Seen(Flow attention, Value x)> own;                 // what self attention that reads x sees
  std::function<Seen(Flow attention, std::int64_t layer)> encoded;  // what cross attention sees; none in the encoder
};

Value t5_block(Flow stack_flow, const T5Config& c, const T5Stack& stack, std::int64_t i, Value x) {
  Flow block = stack_flow.scope(fmt::format("block.{}", i));
  int next = 0;
  const auto layer = [&](auto body) {
    Flow flow = block.scope(fmt::format("layer.{}", next++));
    x = x + body(flow, t5_norm(flow, c, "layer_norm", x));
  };
  layer([&](Flow flow, Value y) {
    Flow attention = flow.scope("SelfAttention");
    return t5_attention(attention, c, y, stack.own(attention, y), stack.self);
  });
  if (stack.encoded)
    layer([&](Flow flow, Value y) {
      Flow attention = flow.scope("EncDecAttention");
      return t5_attention(attention, c, y, stack.encoded(attention, i), stack.cross);
    });
  layer([&](Flow flow, Value y) { return t5_feed_forward(flow.scope("DenseReluDense"), c, y); });
  return x;
}

/// The states after the embeddings and after each block, the last normalised.
Values t5_states(Flow flow, const T5Config& c, const T5Stack& stack, std::int64_t layers, Value embedded) {
  Values states{embedded};
  for (std::int64_t i = 0; i < layers; ++i) states.push_back(t5_block(flow, c, stack, i, states.back()));
  states.back() = t5_norm(flow, c, "final_layer_norm", states.back());
  return states;
}

Value t5_logits(Flow flow, const T5Config& c, const StoredMatrix& table, Value x) {
  if (!c.tied_output) return flow.linear("lm_head", x, c.vocab_size, false);
  return product(x * (1 / std::sqrt(static_cast<double>(c.d_model))), table);
}

StoredMatrix embeddings(Flow flow, const T5Config& c) { return flow.scope("shared").matrix("weight", c.vocab_size, c.d_model); }

/// A stack that sees its own tokens ids (B, S), all of them at once.
T5Stack whole_stack(Flow flow, const T5Config& c, Value ids, bool both_sides) {
  T5Stack stack;
  stack.self.bias = position_bias(flow, c, iota(ids, {ids.dim(1)}, i32, 0), ids.dim(1), both_sides);
  stack.own = [&c](Flow attention, Value x) { return seen_in(attention, c, x); };
  return stack;
}

/// What of keys counts, by a mask (B, S) with 0 for padding.
Value attended(Value mask) { return reshape(ne(mask, scalar(mask, 0, i32)), {mask.dim(0), 1, 1, mask.dim(1)}); }

/// The state `name` (1, num_heads, capacity, d_kv) with `fresh` (1, num_heads, T, d_kv) behind `past` tokens.
Value appended(Flow flow, std::string_view name, Value fresh, Value past, std::int64_t capacity) {
  Value zero = scalar(past, 0, i32);
  Value cache = flow.state(name, {1, fresh.dim(1), capacity, fresh.dim(3)});
  cache = dynamic_update(cache, fresh, {zero, zero, reshape(past, {}), zero});
  flow.keep(name, cache);
  return cache;
}

std::string keys_name(std::int64_t layer) { return fmt::format("keys.{}", layer); }
std::string values_name(std::int64_t layer) { return fmt::format("values.{}", layer); }

}  // namespace

EncodedText encode_text(Flow flow, const T5Config& c, std::int64_t max_batch, std::int64_t max_length) {
  EncodedText text{.inputs = TextInputs::declare(flow.graph(), {}, max_batch, max_length), .table = embeddings(flow, c), .states = {}};
  Flow encoder = flow.scope("encoder");
  T5Stack stack = whole_stack(encoder, c, text.inputs.input_ids, true);
  stack.self.mask = attended(text.inputs.attention_mask);
  text.states = t5_states(encoder, c, stack, c.num_layers, rows_of(text.table, text.inputs.input_ids));
  return text;
}

Graph t5_graph(const T5Config& c, const T5GraphSizes& sizes, const WeightStorage& storage) {
  Graph graph("t5");
  Flow flow(graph, f32, storage), decoder = flow.scope("decoder");
  const EncodedText text = encode_text(flow, c, sizes.batch, sizes.length);
  Value encoded = text.states.back();
  Value target_ids = graph.input("decoder_input_ids", {Dim::symbol("B", sizes.batch), Dim::symbol("T", sizes.decoder_length)}, i32);
  T5Stack writing = whole_stack(decoder, c, target_ids, false);
  writing.cross.mask = attended(text.inputs.attention_mask);
  writing.self.causal = true;
  writing.encoded = [&](Flow attention, std::int64_t) { return seen_in(attention, c, encoded); };
  const Values states = t5_states(decoder, c, writing, c.num_decoder_layers, rows_of(text.table, target_ids));
  graph.output("logits", t5_logits(flow, c, text.table, states.back()));
  graph.output("encoder_last_hidden_state", encoded);
  Values first;
  for (Value state : states) first.push_back(slice_axis(state, 0, 0, 1));
  graph.output("hidden_states_row0", concat(first, 0));
  return graph;
}

Graph t5_encoder_graph(const T5Config& c, std::int64_t length, const WeightStorage& storage) {
  Graph graph("t5_encoder");
  Value ids = graph.input("input_ids", {1, Dim::symbol("S", length)}, i32);
  Flow flow(graph, f32, storage), encoder = flow.scope("encoder");
  Value embedded = rows_of(embeddings(flow, c), ids);
  Value encoded = t5_states(encoder, c, whole_stack(encoder, c, ids, true), c.num_layers, embedded).back();
  for (std::int64_t i = 0; i < c.num_decoder_layers; ++i) {
    const Seen seen = seen_in(flow.scope(fmt::format("decoder.block.{}.layer.1.EncDecAttention", i)), c, encoded);
    graph.output(keys_name(i), seen.keys), graph.output(values_name(i), seen.values);
  }
  return graph;
}

Graph t5_decoder_graph(const T5Config& c, const T5CacheSizes& sizes, const WeightStorage& storage) {
  Graph graph("t5_decoder");
  const Dim length = Dim::symbol("S", sizes.length), target = Dim::symbol("T", sizes.capacity);
  Value ids = graph.input("input_ids", {1, target}, i32), past = graph.input("past", {1}, i32);
  Value positions = past + iota(past, {target}, i32, 0);
  Flow flow(graph, f32, storage), decoder = flow.scope("decoder");
  const StoredMatrix table = embeddings(flow, c);
  T5Stack stack;
  stack.self.causal = true;  // by position: what a cache holds behind a token is not seen
  stack.self.positions = positions;
  stack.self.bias = position_bias(decoder, c, positions, sizes.capacity, false);
  stack.own = [&](Flow attention, Value x) {
    const Seen fresh = seen_in(attention, c, x);
    return Seen{appended(attention, "keys", fresh.keys, past, sizes.capacity),
                appended(attention, "values", fresh.values, past, sizes.capacity), true};
  };
  stack.encoded = [&](const Flow&, std::int64_t i) {
    const Dims shape{1, c.num_heads, length, c.d_kv};
    return Seen{graph.input(keys_name(i), shape, f32), graph.input(values_name(i), shape, f32), true};
  };
  Value last = t5_states(decoder, c, stack, c.num_decoder_layers, rows_of(table, ids)).back();
  graph.output("logits", t5_logits(flow, c, table, last));
  return graph;
}

}  // namespace rlx
