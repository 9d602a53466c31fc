#include "models/families/export/same_model.h"

#include <algorithm>
#include <vector>

#include "models/config/rope_factors.h"
#include "models/layers/encoder.h"

namespace rlx {
namespace {

/// The factors by which a rope divides its frequencies, where they are the same for all lengths.
std::vector<double> factors_of(const RopeOptions& rope) {
  if (rope.scaling != RopeScaling::llama3) return rope.short_factors;
  const std::vector<float> factors = llama3_factors(rope);
  return {factors.begin(), factors.end()};
}

/// Whether its factors are the same for all lengths.
bool has_one_set(const RopeOptions& rope) {
  return rope.scaling == RopeScaling::llama3 || (rope.scaling == RopeScaling::longrope && nearly(rope.short_factors, rope.long_factors));
}

bool same_yarn(const RopeOptions& a, const RopeOptions& b) {
  return nearly_equal(a.beta_fast, b.beta_fast) && nearly_equal(a.beta_slow, b.beta_slow) &&
         nearly_equal(a.attention_factor, b.attention_factor);
}

/// Whether two ropes turn alike, whichever words say so; which elements turn together is another matter.
bool same_rope(const RopeOptions& a, const RopeOptions& b) {
  if (!nearly_equal(a.theta, b.theta) || a.dims != b.dims || !nearly(factors_of(a), factors_of(b))) return false;
  const auto magnitude = [](const RopeOptions& rope) { return rope.scaling == RopeScaling::llama3 ? 1 : rope.attention_factor; };
  if (has_one_set(a) && has_one_set(b)) return nearly_equal(magnitude(a), magnitude(b));
  if (a.scaling != b.scaling) return false;
  if (a.scaling == RopeScaling::longrope)
    return nearly(a.long_factors, b.long_factors) && a.original_length == b.original_length &&
           nearly_equal(a.attention_factor, b.attention_factor);
  return nearly_equal(a.factor, b.factor) &&
         (a.scaling != RopeScaling::yarn || (a.original_length == b.original_length && same_yarn(a, b)));
}

/// `read` with the numbers of `wanted` where they are nearly the same, and with its forms of parameters.
DecoderConfig with_numbers_of(const DecoderConfig& wanted, DecoderConfig read) {
  const auto take = [](double& to, double from, double usual) {
    if (nearly_equal(to == 0 ? usual : to, from == 0 ? usual : from)) to = from;
  };
  take(read.attention_scale, wanted.attention_scale, 1 / std::sqrt(static_cast<double>(wanted.head_size)));
  take(read.embedding_scale, wanted.embedding_scale, 1);
  take(read.residual_scale, wanted.residual_scale, 1);
  take(read.logits_scale, wanted.logits_scale, 1);
  take(read.norm.eps, wanted.norm.eps, 0);
  const std::size_t used = std::min(wanted.ropes.size(), read.ropes.size());
  bool same = wanted.ropes.empty() == read.ropes.empty();
  for (std::size_t i = 0; i < used; ++i) same = same && same_rope(wanted.ropes[i], read.ropes[i]);
  if (same) read.ropes = wanted.ropes;
  take(read.state_space.least_step, wanted.state_space.least_step, 0);
  take(read.state_space.largest_step, wanted.state_space.largest_step, 0);
  take(read.experts.scale, wanted.experts.scale, 1);
  if (read.state_space.norm && wanted.state_space.norm) take(read.state_space.norm->eps, wanted.state_space.norm->eps, 0);
  read.norm.plus_one = wanted.norm.plus_one;
  read.state_space.log_decay = wanted.state_space.log_decay;
  read.delta_net.log_decay = wanted.delta_net.log_decay, read.delta_net.heads_in_turn = wanted.delta_net.heads_in_turn;
  read.latent.keys_by_feature = wanted.latent.keys_by_feature;
  read.first_position = wanted.first_position;
  if (!wanted.causal) read.output = wanted.output;  // whether there is a head the tensors say
  return read;
}

}  // namespace

Graph param_graph(const DecoderConfig& c, bool dense) {
  if (c.causal) return decoder_graph(c, {.sequences = 1, .capacity = 8, .chunk = 8});
  Graph graph("encoder");
  const EncodedText text = encode_text(Flow(graph), c, 1, 1);
  graph.output("states", text.states.back());
  if (c.output) graph.output("logits", token_logits(Flow(graph), c, text));
  if (c.text_head.labels > 0) graph.output("scores", text_scores(Flow(graph), c, text));
  else if (dense) graph.output("vector", text_vector(Flow(graph), c, text));
  return graph;
}

bool same_model(const DecoderConfig& wanted, const DecoderConfig& read) {
  return structurally_equal(param_graph(wanted, false), param_graph(with_numbers_of(wanted, read), false));
}

}  // namespace rlx
