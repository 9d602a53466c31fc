#include "models/layers/decoder.h"

#include <algorithm>

#include "models/layers/activation.h"
#include "models/layers/decoder_cache.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

Value mix_tokens(Flow flow, const DecoderStep& step, const DecoderLayer& layer, Value x) {
  switch (layer.mixer) {
    case Mixer::attention: return decoder_attention(flow.scope("attention"), step, layer, x);
    case Mixer::latent_attention: return decoder_latent_attention(flow.scope("attention"), step, layer, x);
    case Mixer::delta_net: return decoder_delta_net(flow.scope("delta_net"), step, x);
    case Mixer::state_space: return decoder_state_space(flow.scope("state_space"), step, x);
    case Mixer::state_space_heads: return decoder_state_space_heads(flow.scope("state_space"), step, x);
    case Mixer::short_convolution: return decoder_short_convolution(flow.scope("short_convolution"), step, x);
  }
  fail_internal("decoder: mixer {} is not in the enumeration", static_cast<int>(layer.mixer));
}

/// Attention or its like; x is normalised where the model does so.
Value mix(Flow flow, const DecoderStep& step, const DecoderLayer& layer, Value x) {
  Value y = mix_tokens(flow, step, layer, x);
  return step.config.norm_after ? decoder_norm(flow, "attention_post_norm", step.config.norm, y) : y;
}

Value feed_forward(Flow flow, const DecoderConfig& c, const DecoderLayer& layer, Value x) {
  Value y = decoder_feed_forward(flow, c, layer, x);
  return c.norm_after ? decoder_norm(flow, "ffn_post_norm", c.norm, y) : y;
}

Value embed_tokens(Flow flow, const DecoderConfig& c, const StoredMatrix& table, Value ids, Value positions) {
  Value x = flow.adapted_rows("token_embedding", ids, c.vocab_size, rows_of(table, ids));
  if (c.embedding_scale != 1) x = x * c.embedding_scale;
  return c.position_embedding ? x + flow.embedding("position_embedding", positions, c.max_positions, c.hidden_size) : x;
}

void check_sizes(const DecoderConfig& config, const DecoderGraphOptions& options) {
  const bool fits = options.pages > 0 ? options.capacity > 0 : options.capacity >= options.chunk;
  if (options.sequences < 1 || options.chunk < 1 || !fits)
    fail("decoder: {} sequences of {} tokens at a time, caches of {} (allowed: at least 1; a cache holds what one run brings)",
         options.sequences, options.chunk, options.capacity);
  if (options.pages > 0 && options.hidden_states != HiddenStates::none) fail("decoder: pages of a cache (allowed: no hidden states)");
  if (config.position_embedding && options.capacity > config.max_positions)
    fail("decoder: a cache of {} tokens (the model has embeddings for {} positions)", options.capacity, config.max_positions);
}

Value all_layers(Flow flow, const DecoderStep& step, const StoredMatrix& table, Value ids) {
  Value x = embed_tokens(flow, step.config, table, ids, step.positions);
  for (std::size_t i = 0; i < step.config.layers.size(); ++i) x = decoder_layer(flow, step, i, x);
  return x;
}

/// What recurrent layers ask for.
void add_mask(Graph& graph, DecoderStep& step) {
  if (!step.config.is_recurrent()) return;
  const std::int64_t chunk = step.options.chunk;
  const Dim chunks = Dim::symbol("C", scan_chunks(chunk)), tokens = Dim::symbol("L", std::min(chunk, scan_tokens));
  step.mask = graph.input("mask", {step.positions.dim(0), chunks, tokens}, i32);
  step.lengths = sum(step.mask, {1, 2});
}

/// Where there is no recurrence, every token is a sequence of length 1 to the layers; attention finds those that share their pages.
Graph paged_graph(const DecoderConfig& config, const DecoderGraphOptions& options) {
  Graph graph("decoder");
  const bool even = config.is_recurrent();
  const Dim n = even ? Dim::symbol("N", std::min(options.chunk, most_even_sequences)) : Dim::symbol("T", options.chunk);
  const Dim length = even ? Dim::symbol("S", options.chunk) : Dim(1);
  Value ids = graph.input("input_ids", {n, length}, i32), positions = graph.input("positions", {n, length}, i32);
  Value rows = graph.input("rows", {Dim::symbol("R", options.chunk)}, i32);
  Value context = config.length_of_short_factors() > 0 ? reshape(graph.input("context", {n}, i32), {n, 1, 1, 1}) : Value();
  DecoderStep step{.config = config,
                   .options = options,
                   .positions = positions,
                   .past = reshape(slice_axis(positions, 1, 0, 1), {n}),
                   .context = context};
  add_pages(graph, step);
  add_mask(graph, step);
  Flow flow(graph, f32, options.storage, options.adapters);
  const StoredMatrix table = flow.scope("token_embedding").matrix("weight", config.vocab_size, config.hidden_size);
  Value x = reshape(all_layers(flow, step, table, ids), {1, n * length, config.hidden_size});
  graph.output("logits", decoder_logits(flow, config, table, decoder_norm(flow, "output_norm", config.norm, take(x, rows, 1))));
  return graph;
}

}  // namespace

Value decoder_layer(Flow model, const DecoderStep& step, std::size_t i, Value x) {
  const DecoderConfig& c = step.config;
  const DecoderLayer& layer = c.layers[i];
  Flow flow = model.scope(fmt::format("layers.{}", i));
  const auto added = [&](std::string_view norm, Value to, Value y) {
    Value total = to + (c.residual_scale == 1 ? y : y * c.residual_scale);
    return c.norm_sum ? decoder_norm(flow, norm, c.norm, total) : total;
  };
  Value read = c.norm_before && layer.norm ? decoder_norm(flow, "attention_norm", c.norm, x) : x;
  Value mixed = added("attention_post_norm", x, mix(flow, step, layer, read));
  if (!layer.feed_forward) return mixed;
  if (!c.shared_norm) read = c.parallel ? x : mixed;
  if (!c.shared_norm && c.norm_before) read = decoder_norm(flow, "ffn_norm", c.norm, read);
  return added("ffn_post_norm", mixed, feed_forward(flow, c, layer, read));
}

Value states_of_first(const Values& states) {
  Values rows;
  for (Value state : states) rows.push_back(slice_axis(state, 0, 0, 1));
  return concat(rows, 0);
}

Value decoder_logits(Flow flow, const DecoderConfig& c, const StoredMatrix& table, Value x) {
  if (c.output_dense) {
    Flow head = flow.scope("head");
    x = decoder_norm(head, "norm", c.norm, activate(c.output_activation, head.linear("dense", x, c.hidden_size, c.text_head.dense_bias)));
  }
  Value logits = c.tied_output ? flow.adapted("output", x, product(x, table)) : flow.linear("output", x, c.vocab_size, c.output_bias);
  if (c.tied_output && c.output_bias) logits = logits + flow.param("output.bias", {c.vocab_size});
  if (c.logits_scale != 1) logits = logits * c.logits_scale;
  return c.logits_softcap > 0 ? tanh(logits / c.logits_softcap) * c.logits_softcap : logits;
}

Value at_rows(Value x, Value rows) {
  const GatherNumbers numbers{{2}, {1}, {1}, {0}, {0}};
  return gather(x, reshape(rows, {rows.dim(0), rows.dim(1), 1}), numbers, {1, 1, x.dim(2)});
}

Array token_mask(std::int64_t sequences, std::int64_t tokens) {
  const std::int64_t chunks = scan_chunks(tokens), length = (tokens + chunks - 1) / chunks;
  Array mask(i32, {sequences, chunks, length});
  for (std::int64_t i = 0; i < mask.size(); ++i) mask.set_int(i, i % (chunks * length) < tokens);
  return mask;
}

Graph decoder_graph(const DecoderConfig& config, const DecoderGraphOptions& options) {
  check_sizes(config, options);
  if (options.pages > 0) return paged_graph(config, options);
  Graph graph("decoder");
  const std::int64_t n = options.sequences;
  const Dim length = Dim::symbol("S", options.chunk);
  Value ids = graph.input("input_ids", {n, length}, i32), past = graph.input("past", {n}, i32);
  Value rows = graph.input("rows", {n, Dim::symbol("R", options.chunk)}, i32);
  Value positions = reshape(past, {n, 1}) + iota(past, {1, length}, i32, 1);
  Value context = config.length_of_short_factors() > 0 ? graph.input("context", {}, i32) : Value();
  DecoderStep step{.config = config, .options = options, .positions = positions, .past = past, .context = context};
  add_rings(graph, step);
  add_mask(graph, step);
  Flow flow(graph, f32, options.storage, options.adapters);
  const StoredMatrix table = flow.scope("token_embedding").matrix("weight", config.vocab_size, config.hidden_size);
  Values states{embed_tokens(flow, config, table, ids, positions)};
  for (std::size_t i = 0; i < config.layers.size(); ++i) states.push_back(decoder_layer(flow, step, i, states.back()));
  if (options.hidden_states == HiddenStates::none) {
    Value wanted = at_rows(states.back(), rows);
    graph.output("logits", decoder_logits(flow, config, table, decoder_norm(flow, "output_norm", config.norm, wanted)));
    return graph;
  }
  Value last = decoder_norm(flow, "output_norm", config.norm, states.back());
  if (options.hidden_states == HiddenStates::with_embeddings) states.back() = last;
  else states.push_back(last), states.erase(states.begin());
  graph.output("hidden_states_row0", states_of_first(states));
  graph.output("logits", decoder_logits(flow, config, table, at_rows(last, rows)));
  return graph;
}

}  // namespace rlx
