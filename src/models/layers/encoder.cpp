#include "models/layers/encoder.h"

#include <algorithm>

#include "models/layers/activation.h"
#include "models/layers/decoder_step.h"
#include "models/layers/pooling.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// RoBERTa's positions, in a table whose first row is that of padding: of the other tokens, wherever padding stands, counted from 1.
Value counted_positions(Value ids, std::int64_t padding) {
  Value own = cast(ne(ids, scalar(ids, static_cast<double>(padding), i32)), i32);
  return cumsum(own, 1) * own;
}

/// `positions`: of the tokens; null where they follow each other in rows, which takes no gather, or are counted.
Value embed_text(Flow flow, const DecoderConfig& c, const StoredMatrix& table, const TextInputs& inputs, Value positions) {
  Value x = rows_of(table, inputs.input_ids);
  if (c.embedding_scale != 1) x = x * c.embedding_scale;
  if (inputs.token_type_ids) x = x + flow.embedding("type_embedding", inputs.token_type_ids, c.token_types, c.hidden_size);
  if (c.position_embedding) {
    const bool counted = !positions && c.first_position > 0;
    const Dim first = c.first_position - (counted ? 1 : 0);
    if (counted) positions = counted_positions(inputs.input_ids, c.first_position - 1);
    const Dim end = positions ? Dim(c.first_position + c.max_positions) : x.dim(1);
    Value rows = flow.scope("position_embedding").param("weight", {c.first_position + c.max_positions, c.hidden_size});
    rows = slice_axis(rows, 0, first, end);
    x = x + (positions ? take(rows, positions, 0) : rows);
  }
  return c.embedding_norm ? decoder_norm(flow, "embedding_norm", c.norm, x) : x;
}

Values layer_states(Flow flow, const DecoderStep& step, Value x) {
  Values states{x};
  for (std::size_t i = 0; i < step.config.layers.size(); ++i) states.push_back(decoder_layer(flow, step, i, states.back()));
  if (step.config.output_norm) states.back() = decoder_norm(flow, "output_norm", step.config.norm, states.back());
  return states;
}

StoredMatrix embeddings(Flow flow, const DecoderConfig& c) {
  return flow.scope("token_embedding").matrix("weight", c.vocab_size, c.hidden_size);
}

EncodedText encode_packed(Flow flow, const DecoderConfig& config, std::int64_t max_batch, std::int64_t max_length) {
  const Dim texts = Dim::symbol("B", max_batch), longest = Dim::symbol("S", max_length);
  const Dim tokens = longest + Dim::symbol("R", (max_batch - 1) * max_length + 1) - 1;  // so that S rows are known to be there
  Graph& graph = flow.graph();
  const auto of_tokens = [&](const char* name) { return reshape(graph.input(name, {tokens}, i32), {tokens, 1}); };
  EncodedText text{.inputs = {of_tokens("input_ids"), graph.input("attention_mask", {texts, longest}, i32), {}},
                   .table = embeddings(flow, config),
                   .states = {}};
  if (config.token_types > 0) text.inputs.token_type_ids = of_tokens("token_type_ids");
  const PackedTexts packed{of_tokens("text_begins"), of_tokens("text_ends"), longest};
  Value positions = iota(packed.begins, {tokens, 1}, i32, 0) - packed.begins;
  const DecoderStep step{.config = config, .positions = positions, .texts = packed};
  Value states = layer_states(flow, step, embed_text(flow, config, text.table, text.inputs, positions)).back();
  Value first = reshape(graph.input("first_tokens", {texts}, i32), {texts, 1});
  states = reshape(states, {tokens, config.hidden_size});
  text.states = {gather(states, first, {{1, 2}, {}, {0}}, {longest, config.hidden_size})};
  return text;
}

Value pooled(const TextHead& head, const EncodedText& text) {
  return pool(text.states.back(), text.inputs.attention_mask, {head.mean ? Pooling::mean : Pooling::cls});
}

/// What a text head's dense layer makes of vectors (..., hidden_size).
Value through_dense(Flow here, const DecoderConfig& config, Value x) {
  const TextHead& head = config.text_head;
  if (!head.dense) return x;
  x = activate(head.activation, here.linear("dense", x, config.hidden_size, head.dense_bias));
  return head.norm ? decoder_norm(here, "norm", config.norm, x) : x;
}

}  // namespace

TextForm text_form(const DecoderConfig& config) {
  const auto sees_all = [](const DecoderLayer& layer) { return layer.window == 0; };
  return {.types = config.token_types > 0, .packed = std::ranges::all_of(config.layers, sees_all)};
}

TextInputs TextInputs::declare(Graph& graph, const DecoderConfig& config, std::int64_t max_batch, std::int64_t max_length) {
  const Dims shape{Dim::symbol("B", max_batch), Dim::symbol("S", max_length)};
  TextInputs inputs{graph.input("input_ids", shape, i32), graph.input("attention_mask", shape, i32), {}};
  if (config.token_types > 0) inputs.token_type_ids = graph.input("token_type_ids", shape, i32);
  return inputs;
}

EncodedText encode_text(Flow flow, const DecoderConfig& config, std::int64_t max_batch, std::int64_t max_length) {
  EncodedText text{
      .inputs = TextInputs::declare(flow.graph(), config, max_batch, max_length), .table = embeddings(flow, config), .states = {}};
  Value mask = text.inputs.attention_mask;
  Value attended = reshape(ne(mask, scalar(mask, 0, i32)), {mask.dim(0), 1, 1, mask.dim(1)});
  const DecoderStep step{.config = config, .positions = iota(mask, {mask.dim(1)}, i32, 0), .attended = attended};
  text.states = layer_states(flow, step, embed_text(flow, config, text.table, text.inputs, {}));
  return text;
}

EncodedText encode_texts(Flow flow, const DecoderConfig& config, std::int64_t max_batch, std::int64_t max_length) {
  return text_form(config).packed ? encode_packed(flow, config, max_batch, max_length) : encode_text(flow, config, max_batch, max_length);
}

Value token_logits(Flow flow, const DecoderConfig& config, const EncodedText& text) {
  return decoder_logits(flow, config, text.table, text.states.back());
}

Value text_vector(Flow flow, const DecoderConfig& config, const EncodedText& text) {
  return through_dense(flow.scope("classifier"), config, pooled(config.text_head, text));
}

Value text_scores(Flow flow, const DecoderConfig& config, const EncodedText& text) {
  const TextHead& head = config.text_head;
  Flow here = flow.scope("classifier");
  return here.linear("output", through_dense(here, config, head.each_token ? text.states.back() : pooled(head, text)), head.labels);
}

}  // namespace rlx
