#include <cmath>

#include "models/layers/activation.h"
#include "models/layers/decoder_step.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

Value dense(Flow flow, const DecoderConfig& c, Value x, std::int64_t width) {
  Value up = flow.linear("up", x, width, c.ffn_bias);
  Value inner = c.gated ? activate(c.activation, flow.linear("gate", x, width, c.ffn_bias)) * up : activate(c.activation, up);
  return flow.linear("down", inner, c.hidden_size, c.ffn_bias);
}

/// The chosen experts of each token, (T, chosen), and their weights.
struct Routing {
  Value experts, weights;
};

/// scores (T, experts), those of groups that do not take part as low as can be.
Value within_best_groups(const ExpertsConfig& e, Value scores) {
  const Dim& tokens = scores.dim(0);
  Value grouped = reshape(scores, {tokens, e.groups, e.count / e.groups});
  Value best = top_k(sum(top_k(grouped, e.group_judges)[0], {-1}), e.chosen_groups)[1];
  Value takes_part = reduce_or(one_hot(best, e.groups, boolean), {1});
  return reshape(select(reshape(takes_part, {tokens, e.groups, 1}), grouped, scalar(scores, -INFINITY, f32)), scores.shape());
}

Routing route(Flow flow, const ExpertsConfig& e, Value x) {
  Value logits = flow.linear("router", x, e.count, false);
  Value scores = e.sigmoid ? sigmoid(logits) : softmax(logits, -1);
  Value judged = e.router_bias ? scores + flow.param("router_bias", {e.count}) : scores;
  if (e.groups > 1) judged = within_best_groups(e, judged);
  const Values best = top_k(judged, e.chosen);
  Value weights = e.router_bias ? take_along_axis(scores, best[1], -1) : best[0];
  if (e.normalize) weights = weights / (sum(weights, {-1}, true) + 1e-20);
  return {best[1], e.scale == 1 ? weights : weights * e.scale};
}

/// x (T, H) -> (T, H).
Value mixture(Flow flow, const DecoderConfig& c, Value x) {
  const ExpertsConfig& e = c.experts;
  const Routing routing = route(flow, e, x);
  const Dim& tokens = x.dim(0);
  const Dim pairs = tokens * e.chosen;
  Value repeated = reshape(broadcast_to(reshape(x, {tokens, 1, c.hidden_size}), {tokens, e.chosen, c.hidden_size}), {pairs, c.hidden_size});
  Value expert = reshape(routing.experts, {pairs});
  Value gate = flow.expert_linear("gate", repeated, expert, e.count, e.width),
        up = flow.expert_linear("up", repeated, expert, e.count, e.width);
  Value down = flow.expert_linear("down", activate(c.activation, gate) * up, expert, e.count, c.hidden_size);
  Value mixed = sum(reshape(down, {tokens, e.chosen, c.hidden_size}) * reshape(routing.weights, {tokens, e.chosen, 1}), {1});
  if (e.shared_width == 0) return mixed;
  Value shared = dense(flow.scope("shared"), c, x, e.shared_width);
  return mixed + (e.shared_gate ? shared * sigmoid(flow.linear("shared_gate", x, 1, false)) : shared);
}

}  // namespace

Value decoder_feed_forward(Flow flow, const DecoderConfig& config, const DecoderLayer& layer, Value x) {
  if (!layer.experts) return dense(flow.scope("ffn"), config, x, config.ffn_size);
  Value tokens = reshape(x, {x.dim(0) * x.dim(1), config.hidden_size});
  return reshape(mixture(flow.scope("experts"), config, tokens), x.shape());
}

}  // namespace rlx
