#include <bit>
#include <cmath>
#include <limits>

#include "models/layers/decoder_cache.h"
#include "models/layers/rope_table.h"
#include "ops/nn/rounded_attention.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// x (N, S, heads, D), each head normalised with weights of its own, (heads, D).
Value own_head_norm(Flow flow, std::string_view name, NormKind norm, Value x) {
  norm.weight = norm.bias = false;
  return decoder_norm(flow, name, norm, x) * flow.scope(name).param("weight", {x.dim(2), x.dim(3)});
}

/// (N, S, heads * D) -> (N, heads, S, D), each head normalised where the model does so.
Value heads_of(Flow flow, std::string_view norm_name, const DecoderConfig& c, Value x, std::int64_t heads) {
  if (c.query_key_norm == QueryKeyNorm::whole) x = decoder_norm(flow, norm_name, c.norm, x);
  x = reshape(x, {x.dim(0), x.dim(1), heads, c.head_size});
  if (c.query_key_norm == QueryKeyNorm::head) x = decoder_norm(flow, norm_name, c.norm, x);
  if (c.query_key_norm == QueryKeyNorm::own_head) x = own_head_norm(flow, norm_name, c.norm, x);
  return transpose(x, {0, 2, 1, 3});
}

/// One set of longrope's factors, whatever the positions are.
RopeOptions with_one_set(RopeOptions rope, bool far) {
  rope.original_length = far ? 0 : std::numeric_limits<std::int32_t>::max();
  return rope;
}

Value turned(const DecoderStep& step, const DecoderLayer& layer, Value x) {
  if (layer.rope < 0) return x;
  const RopeOptions& options = step.config.ropes[static_cast<std::size_t>(layer.rope)];
  const auto turned_by = [&](const RopeOptions& its) {
    return step.options.rope_tables ? rope_by_table(x, step.positions, step.options.capacity, its) : rope(x, step.positions, its);
  };
  if (options.scaling != RopeScaling::longrope) return turned_by(options);
  if (!step.context) return turned_by(with_one_set(options, false));
  // The whole sequence decides, not the positions of this run: what the cache holds must agree with what is added.
  Value far = gt(step.context, scalar(step.context, options.original_length, i32));
  return select(far, turned_by(with_one_set(options, true)), turned_by(with_one_set(options, false)));
}

/// What an encoder's token sees: no padding, and nothing farther than the window.
Value seen_by_encoder(const DecoderStep& step, const DecoderLayer& layer) {
  if (layer.window == 0) return step.attended;
  const Dim length = step.positions.dim(0);
  Value distance = reshape(step.positions, {length, 1}) - reshape(step.positions, {1, length});
  return logical_and(step.attended, le(abs(distance), scalar(distance, static_cast<double>(layer.window), i32)));
}

/// The rows of each token's text, (T, heads, 1, D) -> (T, heads, longest, D); behind its end those of others. Never stored: attention finds
/// the tokens of one text by where their rows begin.
Value rows_of_text(const PackedTexts& texts, Value x) {
  const Dim &heads = x.dim(1), &size = x.dim(3);
  Value rows = gather(reshape(x, {x.dim(0), heads, size}), texts.begins, {{1, 2, 3}, {}, {0}}, {texts.longest, heads, size});
  return transpose(rows, {0, 2, 1, 3});
}

/// Slopes of ALiBi: powers of one root for as many heads as a power of two has, and for the others those between, two by two.
std::vector<float> alibi_slopes(std::int64_t heads) {
  std::vector<float> slopes;
  const auto first = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  for (std::int64_t i = 0; i < heads; ++i) {
    const auto step = static_cast<double>(i < first ? 2 * (i + 1) : 2 * (i - first) + 1);
    slopes.push_back(static_cast<float>(std::exp2(-4 * step / static_cast<double>(first))));
  }
  return slopes;
}

/// What ALiBi adds to scores, (1, heads, 1, keys): positions of keys alone, as a softmax does not see what all keys of a query share. In
/// bf16, as models are trained with it.
Value alibi_bias(const DecoderConfig& c, Value keys) {
  const auto narrow = [](Value x) { return cast(cast(x, bf16), f32); };
  Value slopes = constant(keys, Array::of<float>({1, c.heads, 1, 1}, alibi_slopes(c.heads)));
  return narrow(narrow(slopes) * narrow(iota(keys, {1, 1, 1, keys.dim(2)}, f32, 3)));
}

/// What scores are multiplied by in a layer.
double score_scale(const DecoderConfig& c, const DecoderLayer& layer) {
  const double scale = c.attention_scale != 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_size));
  return scale / layer.score_divisor;
}

/// Who keeps f32 asks for exact results, as encoders, which keep nothing, do.
Value attend(const DecoderStep& step, Value q, Value k, Value v, const AttentionOptions& options) {
  if (step.options.exact) return exact_attention(q, k, v, options);
  return step.options.cache == CacheType::f32 ? attention(q, k, v, options) : rounded_attention(q, k, v, options);
}

}  // namespace

Value decoder_norm(Flow flow, std::string_view name, const NormKind& norm, Value x) {
  Flow here = flow.scope(name);
  Value weight = norm.weight ? here.param("weight", {x.dim(-1)}) : Value();
  Value bias = norm.bias ? here.param("bias", {x.dim(-1)}) : Value();
  if (norm.plus_one) weight = weight + 1;
  return norm.centred ? layer_norm(x, weight, bias, {-1}, norm.eps) : rms_norm(x, weight, {-1}, norm.eps, bias);
}

Value decoder_attention(Flow flow, const DecoderStep& step, const DecoderLayer& layer, Value x) {
  const DecoderConfig& c = step.config;
  Value q = heads_of(flow, "q_norm", c, flow.linear("q", x, c.heads * c.head_size, c.qkv_bias), c.heads);
  Value k = heads_of(flow, "k_norm", c, flow.linear("k", x, c.kv_heads * c.head_size, c.qkv_bias), c.kv_heads);
  Value v = flow.linear("v", x, c.kv_heads * c.head_size, c.qkv_bias);
  v = transpose(reshape(v, {x.dim(0), x.dim(1), c.kv_heads, c.head_size}), {0, 2, 1, 3});
  q = turned(step, layer, q), k = turned(step, layer, k);
  if (c.causal) k = appended_to_cache(flow, step, layer, "keys", k), v = appended_to_cache(flow, step, layer, "values", v);
  if (step.texts) k = rows_of_text(*step.texts, k), v = rows_of_text(*step.texts, v);
  AttentionOptions options;
  options.scale = layer.score_divisor == 1 ? c.attention_scale : score_scale(c, layer);
  if (c.alibi) options.bias = alibi_bias(c, k) * score_scale(c, layer);
  options.softcap = c.attention_softcap;
  options.causal = c.causal;  // by position: what a cache holds behind a token is not seen
  if (c.causal) options.window = layer.window, options.positions = rows_in_cache(step, layer);
  else if (step.texts) options.causal = true, options.positions = step.texts->last;
  else options.mask = seen_by_encoder(step, layer);
  Value mixed = attend(step, q, k, v, options);  // (N, heads, S, D)
  mixed = reshape(transpose(mixed, {0, 2, 1, 3}), {x.dim(0), x.dim(1), c.heads * c.head_size});
  if (c.attention_gate) mixed = mixed * sigmoid(flow.linear("gate", x, c.heads * c.head_size, c.qkv_bias));
  return flow.linear("output", mixed, c.hidden_size, c.attention_output_bias);
}

Value decoder_latent_attention(Flow flow, const DecoderStep& step, const DecoderLayer& layer, Value x) {
  const DecoderConfig& c = step.config;
  const LatentAttentionConfig& l = c.latent;
  const NormKind norm;  // of its own: the model's epsilon does not count
  const auto by_head = [&](Value features, std::int64_t heads) {
    return transpose(reshape(features, {x.dim(0), x.dim(1), heads, features.dim(-1).value() / heads}), {0, 2, 1, 3});
  };
  const auto matrices = [&](std::string_view name, std::int64_t rows) {
    return reshape(flow.adapted_matrix(name, c.heads * rows, l.rank), {c.heads, rows, l.rank});
  };
  Value to_keys = l.keys_by_feature ? transpose(flow.scope("k").param("weight", {c.heads, l.rank, l.plain_size}), {0, 2, 1})
                                    : matrices("k", l.plain_size);
  Value from = l.query_rank == 0 ? x : decoder_norm(flow, "q_input_norm", norm, flow.linear("q_input", x, l.query_rank, c.qkv_bias));
  Value q = by_head(flow.linear("q", from, c.heads * c.head_size, false), c.heads);
  Value turning = turned(step, layer, slice_axis(q, -1, l.plain_size, c.head_size));
  // q . (K z) = (q K) . z: queries go to the latent features z, so that the keys need not be made of them; values likewise afterwards.
  Value plain = einsum("nhsp,hpr->nhsr", {slice_axis(q, -1, 0, l.plain_size), to_keys});
  Value latent = by_head(decoder_norm(flow, "latent_norm", norm, flow.linear("latent", x, l.rank, c.qkv_bias)), 1);
  Value key = turned(step, layer, by_head(flow.linear("rope_key", x, l.rope_size, c.qkv_bias), 1));
  Value seen = appended_to_cache(flow, step, layer, "latents", concat({latent, key}, -1));
  AttentionOptions options;
  options.scale = score_scale(c, layer);
  options.causal = true;
  options.positions = rows_in_cache(step, layer);
  Value mixed = attend(step, concat({plain, turning}, -1), seen, slice_axis(seen, -1, 0, l.rank), options);
  mixed = einsum("nhsr,hvr->nshv", {mixed, matrices("v", l.value_size)});
  return flow.linear("output", reshape(mixed, {x.dim(0), x.dim(1), c.heads * l.value_size}), c.hidden_size, c.attention_output_bias);
}

}  // namespace rlx
