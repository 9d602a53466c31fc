// Recurrences of state-space and linear-attention layers, as scans over the sequence.
#include <cmath>

#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

void check_shape(std::string_view op, std::string_view what, Value v, const Dims& wanted) {
  if (!(v.shape() == wanted)) fail("rlx.{}: {} is {} (allowed: shape {})", op, what, v.type().to_string(), to_string(wanted));
}

// (b, s, ...) becomes (s, b, ...) in the accumulation type, as a scan takes it.
Value by_step(Value x) { return move_axis(widen(x), 1, 0); }

struct SelectiveScan {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "selective_scan";
  static constexpr std::string_view formula =
      "h = e^(delta A) h + delta B x, y = C h + D x for each step (Gu & Dao 2023); results y and the last h";
  bool has_skip = false, has_state = false;
  static auto fields() { return Fields<&SelectiveScan::has_skip, &SelectiveScan::has_state>{}; }

  static void check(const SelectiveScan& op, In x) {
    const std::size_t wanted = 5 + static_cast<std::size_t>(op.has_skip) + static_cast<std::size_t>(op.has_state);
    detail::check_arity(name, wanted, x.size());
    check_float(name, x[0]);
    if (x[0].rank() != 3 || x[2].rank() != 2)
      fail("rlx.selective_scan: x is {}, A is {} (allowed: [b, s, h] and [h, n])", x[0].type().to_string(), x[2].type().to_string());
    const Dims &shape = x[0].shape(), &transition = x[2].shape(), per_step{shape[0], shape[1], transition[1]};
    check_shape(name, "delta", x[1], shape);
    check_shape(name, "A", x[2], {shape[2], transition[1]});
    check_shape(name, "B", x[3], per_step);
    check_shape(name, "C", x[4], per_step);
    if (op.has_skip) check_shape(name, "D", x[5], {shape[2]});
    if (op.has_state) check_shape(name, "the state", x.back(), {shape[0], shape[2], transition[1]});
  }
  static std::pair<Values, Values> step(Value transition, Value h, const Values& at) {
    Value x = expand_dims(at[0], {-1}), delta = expand_dims(at[1], {-1});  // (b, h, 1)
    Value b = expand_dims(at[2], {1}), c = expand_dims(at[3], {1});        // (b, 1, n)
    h = exp(delta * transition) * h + delta * x * b;
    return {{h}, {sum(h * c, {-1})}};
  }
  static Values body(const SelectiveScan& op, In x) {
    check(op, x);
    const Dims state_shape{x[0].dim(0), x[0].dim(2), x[2].dim(1)};
    Value transition = widen(x[2]), state = op.has_state ? widen(x.back()) : full(x[0], state_shape, 0, accumulation_type(x[0].dtype()));
    const Values results = scan([&](const Values& carry, const Values& at) { return step(transition, carry[0], at); }, {state},
                                {by_step(x[0]), by_step(x[1]), by_step(x[3]), by_step(x[4])});
    Value y = move_axis(results[1], 0, 1);
    if (op.has_skip) y = y + widen(x[0]) * widen(x[5]);
    return {cast(y, x[0].dtype()), results[0]};
  }
  static std::vector<Sample> samples() {
    const Dims shape{2, 3, 4}, per_step{2, 3, 5};
    std::vector<Sample::Operand> operands{
        {{f32, shape}}, {{f32, shape}, 0.1, 1}, {{f32, {4, 5}}, -1, -0.1}, {{f32, per_step}}, {{f32, per_step}}};
    Sample plain{operands, attrs_of(SelectiveScan{}), 4e-6};
    operands.push_back({{f32, {4}}});
    operands.push_back({{f32, {2, 4, 5}}});
    return {plain, {operands, attrs_of(SelectiveScan{true, true}), 4e-6}};
  }
};
const Op<SelectiveScan> selective_scan_op;

struct GatedDeltaNet {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "gated_delta_net";
  static constexpr std::string_view formula =
      "for each step: S = e^g S, d = beta (v - S^T k), S = S + k d^T, o = S^T q / sqrt n (Yang et al. 2024); results o and the last S";
  bool has_state = false;
  static auto fields() { return Fields<&GatedDeltaNet::has_state>{}; }

  static void check(const GatedDeltaNet& op, In x) {
    detail::check_arity(name, 5 + static_cast<std::size_t>(op.has_state), x.size());
    check_float(name, x[0]);
    if (x[0].rank() != 4 || x[2].rank() != 4)
      fail("rlx.gated_delta_net: q is {}, v is {} (allowed: [b, s, h, n])", x[0].type().to_string(), x[2].type().to_string());
    const Dims &keys = x[0].shape(), gates{keys[0], keys[1], keys[2]};
    check_shape(name, "k", x[1], keys);
    check_shape(name, "v", x[2], {keys[0], keys[1], keys[2], x[2].dim(3)});
    check_shape(name, "g", x[3], gates);
    check_shape(name, "beta", x[4], gates);
    if (op.has_state) check_shape(name, "the state", x[5], {keys[0], keys[2], keys[3], x[2].dim(3)});
  }
  static std::pair<Values, Values> step(Value s, const Values& at) {
    Value q = at[0], k = at[1], v = at[2], gate = expand_dims(at[3], {-1, -2}), beta = expand_dims(at[4], {-1});
    s = exp(gate) * s;                                       // (b, h, n, m)
    Value d = (v - einsum("bhnm,bhn->bhm", {s, k})) * beta;  // what the state does not yet recall of v
    s = s + expand_dims(k, {-1}) * expand_dims(d, {-2});
    return {{s}, {einsum("bhnm,bhn->bhm", {s, q})}};
  }
  static Values body(const GatedDeltaNet& op, In x) {
    check(op, x);
    const Dims state_shape{x[0].dim(0), x[0].dim(2), x[0].dim(3), x[2].dim(3)};
    Value state = op.has_state ? widen(x[5]) : full(x[0], state_shape, 0, accumulation_type(x[0].dtype()));
    Value q = by_step(x[0]) * (1 / std::sqrt(static_cast<double>(x[0].dim(3).value())));
    const Values results = scan([](const Values& carry, const Values& at) { return step(carry[0], at); }, {state},
                                {q, by_step(x[1]), by_step(x[2]), by_step(x[3]), by_step(x[4])});
    return {cast(move_axis(results[1], 0, 1), x[0].dtype()), results[0]};
  }
  static std::vector<Sample> samples() {
    const Dims shape{2, 3, 2, 4}, gates{2, 3, 2};
    std::vector<Sample::Operand> operands{
        {{f32, shape}, -1, 1}, {{f32, shape}, -1, 1}, {{f32, shape}}, {{f32, gates}, -1, -0.1}, {{f32, gates}, 0, 1}};
    Sample plain{operands, attrs_of(GatedDeltaNet{}), 4e-6};
    operands.push_back({{f32, {2, 2, 4, 4}}});
    return {plain, {operands, attrs_of(GatedDeltaNet{true}), 4e-6}};
  }
};
const Op<GatedDeltaNet> gated_delta_net_op;

}  // namespace

/// Mamba's selective state space: h = e^(delta A) h + delta B x and y = C h + D x for each step of x [b, s, h], delta [b, s, h], A [h, n],
/// B and C [b, s, n]; D [h] and the first state [b, h, n] may be null (no skip, zeros). Results: y like x, the last state in at least f32.
Values selective_scan(Operand x, Operand delta, Operand A, Operand B, Operand C, Operand D /*= {}*/, Operand state /*= {}*/) {
  Values operands{x, delta, A, B, C};
  for (Value optional : {D, state})
    if (optional) operands.push_back(optional);
  return selective_scan_op.all({static_cast<bool>(D), static_cast<bool>(state)}, operands);
}

/// Gated delta rule (Qwen3-Next's linear attention) over q, k [b, s, h, n] and v [b, s, h, m], log gates g and mixing factors beta [b, s,
/// h]: S = e^g S, d = beta (v - S^T k), S = S + k d^T, o = S^T q / sqrt n. The first state [b, h, n, m] may be null (zeros); n is static.
/// Results: o like v, in q's dtype, and the last state in at least f32. Callers normalise q and k.
Values gated_delta_net(Operand q, Operand k, Operand v, Operand g, Operand beta, Operand state /*= {}*/) {
  Values operands{q, k, v, g, beta};
  if (state) operands.push_back(state);
  return gated_delta_net_op.all({static_cast<bool>(state)}, operands);
}

}  // namespace rlx
