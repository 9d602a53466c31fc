// Layers whose state stands for all tokens before, whatever their number.
#include <cmath>

#include "models/layers/activation.h"
#include "models/layers/decoder_step.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// The state `name` (N, ...), zeros where a sequence begins.
Value recurrent_state(Flow flow, const DecoderStep& step, std::string_view name, Dims shape) {
  Value state = flow.state(name, shape);
  Dims first(shape.size(), 1);
  first[0] = shape[0];
  Value begins = reshape(eq(step.past, scalar(step.past, 0, i32)), first);
  return select(begins, scalar(state, 0, f32), state);
}

/// 1 for tokens, 0 for padding: (N, S, 1).
Value is_token(const DecoderStep& step) {
  const Dim &n = step.positions.dim(0), &length = step.positions.dim(1);
  Value place = iota(step.past, {1, length, 1}, i32, 1);
  return cast(lt(place, reshape(step.lengths, {n, 1, 1})), f32);
}

/// Each feature of x (N, S, C) from its last `kernel` tokens; weights <name>.weight (C, 1, kernel).
Value causal_convolution(Flow flow, const DecoderStep& step, std::string_view name, Value x, std::int64_t kernel, bool bias) {
  const Dim n = x.dim(0), length = x.dim(1), width = x.dim(2);
  Flow here = flow.scope(name);
  Value before = recurrent_state(here, step, "state", {n, kernel - 1, width});
  Value all = concat({before, x}, 1);  // (N, kernel - 1 + S, C)
  Value last = reshape(step.lengths, {n, 1}) + iota(x, {1, kernel - 1}, i32, 1);
  here.keep("state", at_rows(all, last));
  Value weight = here.param("weight", {width, 1, kernel});
  Value y = bias ? here.param("bias", {width}) : Value();
  for (std::int64_t i = 0; i < kernel; ++i) {
    Value term = slice_axis(all, 1, i, length + i) * reshape(slice_axis(weight, 2, i, i + 1), {width});
    y = y ? y + term : term;
  }
  return y;
}

/// Features (N, S, heads * size) as (N, S, heads, size).
Value by_head(Value x, std::int64_t heads, std::int64_t size) { return reshape(x, {x.dim(0), x.dim(1), heads, size}); }

/// Each of (N, S, heads, size) as `count` equal heads side by side.
Value repeated_heads(Value x, std::int64_t count) {
  if (count == 1) return x;
  const Dims s = x.shape();
  return reshape(broadcast_to(reshape(x, {s[0], s[1], s[2], 1, s[3]}), {s[0], s[1], s[2], count, s[3]}), {s[0], s[1], s[2] * count, s[3]});
}

/// The same, one of each after the other.
Value repeated_in_turn(Value x, std::int64_t count) {
  const Dims& s = x.shape();
  return reshape(broadcast_to(reshape(x, {s[0], s[1], 1, s[2], s[3]}), {s[0], s[1], count, s[2], s[3]}), {s[0], s[1], s[2] * count, s[3]});
}

/// x (N, S, ...) in the chunks of the step, (N, C, L, ...), with zeros behind its end.
Value in_chunks(const DecoderStep& step, Value x) {
  const Dim &count = step.mask.dim(1), &length = step.mask.dim(2);
  Dims none(x.shape().size(), 0), behind = none, shape = x.shape();
  behind[1] = count * length - x.dim(1);
  shape[1] = count;
  shape.insert(shape.begin() + 2, length);
  return reshape(pad(x, none, behind, {}, 0), shape);
}

/// The way back: (N, C, L, ...) -> (N, S, ...).
Value out_of_chunks(const DecoderStep& step, Value x) {
  Dims none(x.shape().size() - 1, 0), behind = none, shape = x.shape();
  shape.erase(shape.begin() + 1);
  shape[1] = x.dim(1) * x.dim(2);
  behind[1] = step.positions.dim(1) - shape[1];
  return pad(reshape(x, shape), none, behind, {}, 0);
}

/// cumsum along the last axis, which is short: sums that kernels take in.
Value running_sum(Value x) {
  Value from = iota(x, {x.dim(-1), 1}, i32, 0), to = iota(x, {1, x.dim(-1)}, i32, 1);
  return sum(select(le(from, to), expand_dims(x, {-1}), scalar(x, 0, f32)), {-2});
}

/// e^(to[j] - from[i]) where i < j, or where i = j `with_itself`, else 0, along the last axis of both: (..., J, I).
Value decay_between(Value to, Value from, bool with_itself) {
  Value j = iota(to, {to.dim(-1), 1}, i32, 0), i = iota(to, {1, from.dim(-1)}, i32, 1);
  Value decay = exp(expand_dims(to, {-1}) - expand_dims(from, {-2}));
  return select(with_itself ? ge(j, i) : gt(j, i), decay, scalar(decay, 0, f32));
}

/// What tokens of C chunks of L say to a state of heads that come in G groups of H.
struct HeadInputs {
  Value log_decay;      // (N, C, L, G, H)
  Value x;              // (N, C, L, G, H, size)
  Value to_state, out;  // (N, C, L, G, states)
};

/// For each token S = e^log_decay S + x to_state^T and y = S out, with S (N, G, H, size, states): the last S, and y like x. Tokens of a
/// chunk meet in products, as in attention; from chunk to chunk goes a state (Dao & Gu 2024, section 6).
Values scan_heads(Value state, const HeadInputs& in) {
  const Dim chunks = in.x.dim(1), length = in.x.dim(2);
  Value within = running_sum(transpose(in.log_decay, {0, 1, 3, 4, 2}));  // (N, C, G, H, L)
  Value end = slice_axis(within, -1, length - 1, length);
  Value weights = expand_dims(einsum("nctgm,ncsgm->ncgts", {in.out, in.to_state}), {3}) * decay_between(within, within, true);
  Value y = einsum("ncghts,ncsghp->nctghp", {weights, in.x});

  Value until_end = expand_dims(exp(end - within), {-1});
  Value added = einsum("ncghsp,ncsgm->nghcpm", {transpose(in.x, {0, 1, 3, 4, 2, 5}) * until_end, in.to_state});
  Value whole = transpose(reshape(end, {state.dim(0), chunks, state.dim(1), state.dim(2)}), {0, 2, 3, 1});
  Value before = running_sum(pad(whole, {0, 0, 0, 1}, {0, 0, 0, 0}, {}, 0));            // (N, G, H, C + 1)
  Value carried = decay_between(before, slice_axis(before, -1, 1, chunks + 1), false);  // (N, G, H, C + 1, C)
  Value states = einsum("nghji,nghipm->nghjpm", {carried, added}) + expand_dims(exp(before), {-1, -2}) * expand_dims(state, {3});
  Value seen = einsum("nctgm,nghcpm->nctghp", {in.out, slice_axis(states, 3, 0, chunks)});
  y = y + seen * expand_dims(exp(transpose(within, {0, 1, 4, 2, 3})), {-1});
  return {reshape(slice_axis(states, 3, chunks, chunks + 1), state.shape()), y};
}

/// How fast a state forgets: below 0.
Value state_space_decay(Flow flow, const StateSpaceConfig& s, const Dims& shape) {
  return s.log_decay ? -exp(flow.param("log_decay", shape)) : flow.param("decay", shape);
}

Value unit_length(Value x) { return x * rsqrt(sum(square(x), {-1}, true) + 1e-6); }

}  // namespace

Value decoder_delta_net(Flow flow, const DecoderStep& step, Value x) {
  const DecoderConfig& c = step.config;
  const DeltaNetConfig& d = c.delta_net;
  const std::int64_t keys = d.key_heads * d.key_size, values = d.value_heads * d.value_size;
  Value inputs = concat({flow.linear("q", x, keys, false), flow.linear("k", x, keys, false), flow.linear("v", x, values, false)}, -1);
  inputs = activate(c.activation, causal_convolution(flow, step, "convolution", inputs, d.kernel, false));
  const auto key_heads = [&](std::int64_t from) {
    Value heads = unit_length(by_head(slice_axis(inputs, -1, from, from + keys), d.key_heads, d.key_size));
    const std::int64_t share = d.value_heads / d.key_heads;
    return d.heads_in_turn ? repeated_in_turn(heads, share) : repeated_heads(heads, share);
  };
  Value v = by_head(slice_axis(inputs, -1, 2 * keys, 2 * keys + values), d.value_heads, d.value_size);
  Value beta = sigmoid(flow.linear("beta", x, d.value_heads, false));
  Value decay = softplus(flow.linear("decay", x, d.value_heads, false) + flow.param("decay_bias", {d.value_heads}));
  Value rate = d.log_decay ? -exp(flow.param("log_decay", {d.value_heads})) : flow.param("decay_rate", {d.value_heads});
  Value log_gate = rate * decay;
  Value tokens = is_token(step);  // padding leaves the state as it is: it adds nothing and forgets nothing
  Value state = recurrent_state(flow, step, "state", {x.dim(0), d.value_heads, d.key_size, d.value_size});
  const Values result = gated_delta_net(key_heads(0), key_heads(keys), v, log_gate * tokens, beta * tokens, state);
  flow.keep("state", result[1]);
  NormKind norm = c.norm;
  norm.plus_one = false;
  Value gate = by_head(flow.linear("gate", x, values, false), d.value_heads, d.value_size);
  Value y = decoder_norm(flow, "norm", norm, result[0]) * silu(gate);
  return flow.linear("output", reshape(y, {x.dim(0), x.dim(1), values}), c.hidden_size, false);
}

Value decoder_state_space(Flow flow, const DecoderStep& step, Value x) {
  const DecoderConfig& c = step.config;
  const StateSpaceConfig& s = c.state_space;
  const auto normalised = [&](std::string_view name, Value y) { return s.norm ? decoder_norm(flow, name, *s.norm, y) : y; };
  Value inner = flow.linear("input", x, s.width, s.bias), gate = flow.linear("gate", x, s.width, s.bias);
  inner = activate(c.activation, causal_convolution(flow, step, "convolution", inner, s.kernel, s.convolution_bias));
  Value rates = normalised("step_norm", flow.linear("step_input", inner, s.step_rank, false));
  Value size = softplus(flow.linear("step", rates, s.width)) * is_token(step);
  Value decay = state_space_decay(flow, s, {s.width, s.states});
  Value state = recurrent_state(flow, step, "state", {x.dim(0), s.width, s.states});
  Value b = normalised("b_norm", flow.linear("b", inner, s.states, false)),
        to_output = normalised("c_norm", flow.linear("c", inner, s.states, false));
  const Values result = selective_scan(inner, size, decay, b, to_output, flow.param("skip", {s.width}), state);
  flow.keep("state", result[1]);
  return flow.linear("output", result[0] * silu(gate), c.hidden_size, s.bias);
}

Value decoder_state_space_heads(Flow flow, const DecoderStep& step, Value x) {
  const DecoderConfig& c = step.config;
  const StateSpaceConfig& s = c.state_space;
  const std::int64_t size = s.width / s.heads, shared = s.groups * s.states, group_width = s.width / s.groups, heads = s.heads / s.groups;
  Value gate = flow.linear("gate", x, s.width, s.bias);
  Value inputs = flow.linear("input", x, s.width + 2 * shared, s.bias);
  inputs = activate(c.activation, causal_convolution(flow, step, "convolution", inputs, s.kernel, s.convolution_bias));
  Value inner = by_head(slice_axis(inputs, -1, 0, s.width), s.heads, size);
  const auto of_groups = [&](std::int64_t from) {
    return in_chunks(step, by_head(slice_axis(inputs, -1, from, from + shared), s.groups, s.states));
  };
  Value steps = softplus(flow.linear("step", x, s.heads, s.bias) + flow.param("step_bias", {s.heads}));
  if (s.least_step > 0 || std::isfinite(s.largest_step)) steps = clamp(steps, s.least_step, s.largest_step);
  steps = steps * is_token(step);  // padding leaves the state as it is
  Value log_decay = steps * state_space_decay(flow, s, {s.heads});
  Value state = recurrent_state(flow, step, "state", {x.dim(0), s.heads, size, s.states});
  const Values result =
      scan_heads(reshape(state, {x.dim(0), s.groups, heads, size, s.states}),
                 {.log_decay = in_chunks(step, reshape(log_decay, {x.dim(0), x.dim(1), s.groups, heads})),
                  .x = in_chunks(step, reshape(inner * expand_dims(steps, {-1}), {x.dim(0), x.dim(1), s.groups, heads, size})),
                  .to_state = of_groups(s.width),
                  .out = of_groups(s.width + shared)});
  flow.keep("state", reshape(result[0], state.shape()));
  Value y = reshape(out_of_chunks(step, result[1]), inner.shape()) + inner * reshape(flow.param("skip", {s.heads}), {s.heads, 1});
  y = reshape(y, {x.dim(0), x.dim(1), s.width}) * silu(gate);
  y = reshape(rms_norm(by_head(y, s.groups, group_width), Value(), {-1}, c.norm.eps), y.shape()) * flow.param("norm.weight", {s.width});
  return flow.linear("output", y, c.hidden_size, s.bias);
}

Value decoder_short_convolution(Flow flow, const DecoderStep& step, Value x) {
  const auto [kernel, bias] = step.config.short_convolution;
  const std::int64_t width = step.config.hidden_size;
  Value gated = flow.linear("before", x, width, bias) * flow.linear("input", x, width, bias);
  Value mixed = causal_convolution(flow, step, "kernel", gated, kernel, bias);
  return flow.linear("output", flow.linear("after", x, width, bias) * mixed, width, bias);
}

}  // namespace rlx
