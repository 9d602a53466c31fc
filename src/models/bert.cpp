#include "models/bert.h"

#include "models/model_folder.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

Value embed(Flow flow, const BertConfig& config, const TextInputs& inputs) {
  const std::int64_t width = config.hidden_size;
  Value words = flow.embedding("word_embeddings", inputs.input_ids, config.vocab_size, width);                  // (B, S, H)
  Value types = flow.embedding("token_type_embeddings", inputs.token_type_ids, config.type_vocab_size, width);  // (B, S, H)
  Value table = flow.scope("position_embeddings").param("weight", {config.max_position_embeddings, width});
  Value positions = slice_axis(table, 0, 0, inputs.input_ids.dim(1));  // (S, H): positions count from 0, so no gather
  return flow.layer_norm("LayerNorm", words + types + positions, config.layer_norm_eps);
}

/// (B, S, H) -> (B, heads, S, H / heads)
Value split_heads(Value x, std::int64_t heads) {
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2).value() / heads}), {0, 2, 1, 3});
}

/// Dense, residual, norm: the end of both halves of a layer.
Value add_and_norm(Flow flow, const BertConfig& config, Value x, Value residual) {
  return flow.layer_norm("LayerNorm", flow.linear("dense", x, config.hidden_size) + residual, config.layer_norm_eps);
}

/// keep: bool (B, 1, 1, S).
Value attend(Flow flow, const BertConfig& config, Value x, Value keep) {
  auto heads_of = [&](std::string_view name) { return split_heads(flow.linear(name, x, config.hidden_size), config.num_attention_heads); };
  Value q = heads_of("query"), k = heads_of("key"), v = heads_of("value");
  AttentionOptions options;
  options.mask = keep;
  Value context = attention(q, k, v, options);  // (B, heads, S, D)
  return reshape(transpose(context, {0, 2, 1, 3}), x.shape());
}

Value layer(Flow flow, const BertConfig& config, Value x, Value keep) {
  x = add_and_norm(flow.scope("attention.output"), config, attend(flow.scope("attention.self"), config, x, keep), x);
  Value wide = activate(config.hidden_act, flow.linear("intermediate.dense", x, config.intermediate_size));
  return add_and_norm(flow.scope("output"), config, wide, x);
}

void refuse_unsupported(const JsonField& config) {
  if (auto kind = config.find("position_embedding_type")) kind->as_one_of({"absolute"});
  for (std::string_view name : {"is_decoder", "add_cross_attention"}) {
    if (auto flag = config.find(name); flag && flag->as_bool()) flag->refuse("decoders are not supported (allowed: false)");
  }
}

}  // namespace

BertConfig BertConfig::read(const JsonField& config) {
  refuse_unsupported(config);
  BertConfig result;
  result.vocab_size = as_size(config.at("vocab_size"));
  result.hidden_size = as_size(config.at("hidden_size"));
  result.num_hidden_layers = static_cast<std::int64_t>(config.at("num_hidden_layers").as_integer(1, 1024));
  result.num_attention_heads = as_size(config.at("num_attention_heads"));
  result.intermediate_size = as_size(config.at("intermediate_size"));
  result.max_position_embeddings = as_size(config.at("max_position_embeddings"));
  result.type_vocab_size = as_size(config.at("type_vocab_size"));
  result.layer_norm_eps = as_number(config.at("layer_norm_eps"), 0, 1);
  result.hidden_act = read_activation(config.at("hidden_act"));
  if (result.hidden_size % result.num_attention_heads != 0) {
    config.at("num_attention_heads").refuse("{} heads do not divide hidden_size {}", result.num_attention_heads, result.hidden_size);
  }
  return result;
}

TextInputs TextInputs::declare(Graph& graph, std::int64_t max_batch, std::int64_t max_length) {
  const Dims shape{Dim::symbol("B", max_batch), Dim::symbol("S", max_length)};
  return {graph.input("input_ids", shape, i32), graph.input("attention_mask", shape, i32), graph.input("token_type_ids", shape, i32)};
}

Values bert_hidden_states(Flow flow, const BertConfig& config, const TextInputs& inputs) {
  const Dims& size = inputs.attention_mask.shape();
  Value keep =
      reshape(ne(inputs.attention_mask, scalar(inputs.attention_mask, 0, inputs.attention_mask.dtype())), {size[0], 1, 1, size[1]});
  Values states{embed(flow.scope("embeddings"), config, inputs)};
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    states.push_back(layer(flow.scope(fmt::format("encoder.layer.{}", i)), config, states.back(), keep));
  }
  return states;
}

Value bert_pooler(Flow flow, const BertConfig& config, Value last_hidden_state) {
  Value first = reshape(slice_axis(last_hidden_state, 1, 0, 1), {last_hidden_state.dim(0), config.hidden_size});
  return tanh(flow.linear("pooler.dense", first, config.hidden_size));
}

WeightNames bert_weight_names() {
  return {.prefix = "bert.",
          .endings = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}},
          .unused = {"embeddings.position_ids", "pooler", "cls"}};
}

}  // namespace rlx
