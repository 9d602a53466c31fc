#include "models/encoder.h"

#include "models/decoder_step.h"
#include "models/pooling.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

Value embed_text(Flow flow, const DecoderConfig& c, const StoredMatrix& table, const TextInputs& inputs) {
  Value x = rows_of(table, inputs.input_ids);
  if (inputs.token_type_ids) x = x + flow.embedding("type_embedding", inputs.token_type_ids, c.token_types, c.hidden_size);
  if (c.position_embedding) {  // positions follow each other, so no gather
    Value rows = flow.scope("position_embedding").param("weight", {c.first_position + c.max_positions, c.hidden_size});
    x = x + slice_axis(rows, 0, c.first_position, x.dim(1) + c.first_position);
  }
  return c.embedding_norm ? decoder_norm(flow, "embedding_norm", c.norm, x) : x;
}

}  // namespace

TextInputs TextInputs::declare(Graph& graph, const DecoderConfig& config, std::int64_t max_batch, std::int64_t max_length) {
  const Dims shape{Dim::symbol("B", max_batch), Dim::symbol("S", max_length)};
  TextInputs inputs{graph.input("input_ids", shape, i32), graph.input("attention_mask", shape, i32), {}};
  if (config.token_types > 0) inputs.token_type_ids = graph.input("token_type_ids", shape, i32);
  return inputs;
}

EncodedText encode_text(Flow flow, const DecoderConfig& config, std::int64_t max_batch, std::int64_t max_length) {
  EncodedText text{.inputs = TextInputs::declare(flow.graph(), config, max_batch, max_length),
                   .table = flow.scope("token_embedding").matrix("weight", config.vocab_size, config.hidden_size),
                   .states = {}};
  Value mask = text.inputs.attention_mask;
  Value attended = reshape(ne(mask, scalar(mask, 0, i32)), {mask.dim(0), 1, 1, mask.dim(1)});
  const DecoderStep step{.config = config, .positions = iota(mask, {mask.dim(1)}, i32, 0), .attended = attended};
  text.states = {embed_text(flow, config, text.table, text.inputs)};
  for (std::size_t i = 0; i < config.layers.size(); ++i) text.states.push_back(decoder_layer(flow, step, i, text.states.back()));
  if (config.output_norm) text.states.back() = decoder_norm(flow, "output_norm", config.norm, text.states.back());
  return text;
}

Value token_logits(Flow flow, const DecoderConfig& config, const EncodedText& text) {
  return decoder_logits(flow, config, text.table, text.states.back());
}

Value text_vector(Flow flow, const DecoderConfig& config, const EncodedText& text) {
  const TextHead& head = config.text_head;
  Flow here = flow.scope("classifier");
  Value x = pool(text.states.back(), text.inputs.attention_mask, {head.mean ? Pooling::mean : Pooling::cls});
  if (!head.dense) return x;
  x = activate(head.activation, here.linear("dense", x, config.hidden_size, head.dense_bias));
  return head.norm ? decoder_norm(here, "norm", config.norm, x) : x;
}

Value text_scores(Flow flow, const DecoderConfig& config, const EncodedText& text) {
  return flow.scope("classifier").linear("output", text_vector(flow, config, text), config.text_head.labels);
}

}  // namespace rlx
