#include "models/run/sentence_graph.h"

#include "formats/checkpoint.h"
#include "models/layers/activation.h"
#include "models/layers/pooling.h"
#include "models/layers/t5.h"
#include "rlx/ops.h"

namespace rlx {

TextForm text_form(const SentenceModelConfig& config) { return config.t5 ? TextForm{} : text_form(config.encoder); }

Graph sentence_graph(const SentenceModelConfig& config, std::int64_t max_batch, WeightStorage storage, LowRankForms adapters, bool padded) {
  Graph graph("sentence_encoder");
  const Flow flow(graph, f32, std::move(storage), std::move(adapters));
  const EncodedText text = config.t5 ? encode_text(flow, *config.t5, max_batch, config.max_length)
                           : padded  ? encode_text(flow, config.encoder, max_batch, config.max_length)
                                     : encode_texts(flow, config.encoder, max_batch, config.max_length);
  Value vector = pool(text.states.back(), text.inputs.attention_mask, config.pooling);
  if (const auto& dense = config.dense) {
    vector = flow.scope("dense").linear("linear", vector, dense->out, dense->bias);
    if (dense->activation) vector = activate(*dense->activation, vector);
  }
  graph.output("embedding", config.normalize ? normalize_rows(vector) : vector);
  return graph;
}

NamedArrays load_dense(const SentenceDense& dense) {
  const Checkpoint file = Checkpoint::open(dense.weights);
  NamedArrays arrays;
  for (std::string_view name : file.names()) {
    const Array stored = file.array(name);
    Array wide(f32, stored.shape());
    for (std::int64_t i = 0; i < stored.size(); ++i) wide.set_double(i, stored.get_double(i));
    arrays.emplace(fmt::format("dense.{}", name), std::move(wide));
  }
  return arrays;
}

}  // namespace rlx
