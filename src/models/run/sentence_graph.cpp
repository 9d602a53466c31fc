#include "models/run/sentence_graph.h"

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
  for (std::size_t i = 0; i < config.dense.size(); ++i) {
    const SentenceDense& dense = config.dense[i];
    vector = activate(dense.activation, flow.scope("dense").linear(std::to_string(i), vector, dense.out, dense.bias));
  }
  graph.output("embedding", config.normalize ? normalize_rows(vector) : vector);
  return graph;
}

Graph score_graph(std::string name, const DecoderFiles& files, std::int64_t max_batch, std::int64_t max_length) {
  Graph graph(std::move(name));
  Flow flow(graph, f32, stored_types(files.checkpoint, files.names), files.adapters.forms());
  graph.output("scores", text_scores(flow, files.config, encode_texts(flow, files.config, max_batch, max_length)));
  return graph;
}

}  // namespace rlx
