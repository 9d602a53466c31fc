#include "models/decoder_step.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

Value embed_text(Flow flow, const DecoderConfig& c, const StoredMatrix& table, Value ids, Value types) {
  Value x = rows_of(table, ids);
  if (types) x = x + flow.embedding("type_embedding", types, c.token_types, c.hidden_size);
  return c.embedding_norm ? decoder_norm(flow, "embedding_norm", c.norm, x) : x;
}

}  // namespace

Graph encoder_graph(const DecoderConfig& config, std::int64_t batch, std::int64_t length) {
  Graph graph("encoder");
  const Dims size{Dim::symbol("B", batch), Dim::symbol("S", length)};
  Value ids = graph.input("input_ids", size, i32), mask = graph.input("attention_mask", size, i32);
  Value types = config.token_types > 0 ? graph.input("token_type_ids", size, i32) : Value();
  Value attended = reshape(ne(mask, scalar(mask, 0, i32)), {size[0], 1, 1, size[1]});
  const DecoderStep step{.config = config, .positions = iota(ids, {size[1]}, i32, 0), .attended = attended};
  Flow flow(graph);
  const StoredMatrix table = flow.scope("token_embedding").matrix("weight", config.vocab_size, config.hidden_size);
  Values states{embed_text(flow, config, table, ids, types)};
  for (std::size_t i = 0; i < config.layers.size(); ++i) states.push_back(decoder_layer(flow, step, i, states.back()));
  if (config.output_norm) states.back() = decoder_norm(flow, "output_norm", config.norm, states.back());
  if (config.output) graph.output("logits", decoder_logits(flow, config, table, states.back()));
  else graph.output("last_hidden_state", states.back());
  graph.output("hidden_states_row0", states_of_first(states));
  return graph;
}

}  // namespace rlx
