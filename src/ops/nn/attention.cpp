// Scaled dot-product attention with grouped heads, masks, windows, biases and soft caps.
#include <cmath>

#include "ops/nn/attention_scores.h"
#include "ops/nn/rounded_attention.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

struct Attention {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "attention";
  static constexpr std::string_view formula =
      "softmax(cap(q k^T * scale) + bias, masked) v; a row that sees no key gives 0. Operands: q, k, v, then those of mask, bias, "
      "positions that are there. With int16, 32 queries and more may be computed from rounded numbers: rows of q "
      "and k to 2^-16 of their length, those of v to 2^-14 of their largest, weights to 2^-12 of theirs. With exact, no policy of "
      "precision narrows it";
  double scale = 0, softcap = 0;
  bool causal = false;
  std::int64_t window = 0;
  bool int16 = false, exact = false;
  bool has_mask = false, has_bias = false, has_positions = false;
  static auto fields() {
    return Fields<&Attention::scale, &Attention::softcap, &Attention::causal, &Attention::window, &Attention::int16, &Attention::exact,
                  &Attention::has_mask, &Attention::has_bias, &Attention::has_positions>{};
  }

  /// Heads of q for each head of k and v.
  static Dim heads_per_group(Value q, Value k, Value v) {
    const int rank = q.rank();
    bool fits =
        rank >= 3 && k.rank() == rank && v.rank() == rank && q.dim(-1) == k.dim(-1) && k.dim(-2) == v.dim(-2) && k.dim(-3) == v.dim(-3);
    for (int axis = 0; fits && axis < rank - 3; ++axis) fits = q.dim(axis) == k.dim(axis) && q.dim(axis) == v.dim(axis);
    const auto group = fits ? Dim::exact_div(q.dim(-3), k.dim(-3)) : std::nullopt;
    if (!group || !(*group - 1).known_non_negative())
      fail(
          "rlx.attention: q {}, k {}, v {} do not fit (allowed: q [B, H, Sq, D], k [B, Hkv, Sk, D], v [B, Hkv, Sk, Dv], H a multiple of "
          "Hkv)",
          q.type().to_string(), k.type().to_string(), v.type().to_string());
    return *group;
  }
  /// (..., H, Sq, Sk): a place for each query and key.
  static Dims score_shape(Value q, Value k) {
    Dims shape = q.shape();
    shape.back() = k.dim(-2);
    return shape;
  }
  /// The places (..., Sq, 1) of queries and (1, Sk) of keys.
  static std::pair<Value, Value> places(Value q, Value k, Value positions) {
    const Dim &queries = q.dim(-2), &keys = k.dim(-2);
    if (positions) {
      Dims shape = positions.shape();
      shape.insert(shape.end() - 1, Dim(1));
      shape.push_back(1);
      return {reshape(cast(positions, i32), shape), iota(q, {1, keys}, i32, 1)};
    }
    // Counted from the end, where the last query and the last key meet: no size is needed as a number.
    return {-reverse(iota(q, {queries, 1}, i32, 0), {0}), -reverse(iota(q, {1, keys}, i32, 1), {1})};
  }
  /// A mask or bias broadcasts to the scores (..., H, Sq, Sk).
  static void check_fits(std::string_view what, Value operand, const Dims& scores) {
    if (operand.rank() > static_cast<int>(scores.size()) || !(broadcast_shapes(name, operand.shape(), scores) == scores))
      fail("rlx.attention: {} {} does not broadcast to the scores {}", what, operand.type().to_string(), to_string(scores));
  }
  static void check_mask(Value mask, const Dims& scores) {
    if (!is_bool(mask.dtype())) fail("rlx.attention: the mask is {} (allowed: bool, true = keep)", mask.type().to_string());
    check_fits("mask", mask, scores);
  }
  static void check_bias(Value bias, const Dims& scores) {
    if (!is_float(bias.dtype())) fail("rlx.attention: the bias is {} (allowed: floats)", bias.type().to_string());
    check_fits("bias", bias, scores);
  }
  /// Positions are (Sq), or (..., Sq) with the batch axes of the scores.
  static void check_positions(Value positions, const Dims& scores) {
    Dims full(scores.begin(), scores.end() - 3);
    full.push_back(scores[scores.size() - 2]);
    if (!is_integer(positions.dtype()) || positions.rank() == 0 || !(positions.dim(-1) == full.back()) ||
        positions.rank() > static_cast<int>(full.size()) || !(broadcast_shapes(name, positions.shape(), full) == full))
      fail("rlx.attention: positions {} do not fit (allowed: integers that broadcast to {})", positions.type().to_string(),
           to_string(full));
  }
  static void check_attributes(const Attention& op, Value q) {
    if (!(op.softcap >= 0) || std::isinf(op.softcap) || op.window < 0)
      fail("rlx.attention: softcap {}, window {} (allowed: >= 0)", op.softcap, op.window);
    if (!std::isfinite(op.scale)) fail("rlx.attention: scale {} (allowed: finite; 0: 1 / sqrt(D))", op.scale);
    if (op.scale == 0 && !q.dim(-1).is_static()) fail("rlx.attention: a symbolic head size {} needs a scale", q.dim(-1).to_string());
  }
  struct Parts {
    AttentionScoring scoring;
    AttentionQueries queries;
    AttentionKeys keys;
    Value v;
    bool places_are_numbers = true;
  };
  static Parts parts(const Attention& op, In operands) {
    const std::size_t needed = 3u + op.has_mask + op.has_bias + op.has_positions;
    if (operands.size() != needed) fail("rlx.attention: {} operands, the attributes say {}", operands.size(), needed);
    check_float(name, operands[0]);
    Value q = widen(operands[0]), k = widen(operands[1]), v = widen(operands[2]);
    std::size_t next = 3;
    Value mask = op.has_mask ? operands[next++] : Value(), bias = op.has_bias ? operands[next++] : Value();
    Value positions = op.has_positions ? operands[next++] : Value();
    const Dim group = heads_per_group(q, k, v);
    check_attributes(op, q);
    const Dims scores = score_shape(q, k);
    if (mask) check_mask(mask, scores);
    if (bias) check_bias(bias, scores);
    if (positions) check_positions(positions, scores);
    const double scale = op.scale != 0 ? op.scale : 1 / std::sqrt(static_cast<double>(q.dim(-1).value()));
    Parts parts{{scale, op.softcap, op.causal, op.window, group}, {q, mask, bias, {}}, {k, {}}, v, !positions};
    if (parts.scoring.by_place()) std::tie(parts.queries.place, parts.keys.place) = places(q, k, positions);
    return parts;
  }
  static Value body(const Attention& op, In operands) {
    const Parts all = parts(op, operands);
    Value weights = attention_weights(all.scoring, all.queries, all.keys).weights;
    return cast(attention_by_head(weights, all.v, all.scoring.group, all.v.rank() - 2), operands[0].dtype());
  }
  static bool vjp_applies(const Attention&, std::span<const Type> operands) { return attention_gradient_fits(operands[0], operands[1]); }
  static Values vjp(const Attention& op, In operands, In y, In dy) {
    Parts all = parts(op, operands);
    for (Value* one : {&all.queries.mask, &all.queries.bias, &all.queries.place})
      if (*one) *one = with_rank(*one, all.queries.q.rank());
    const Values gradients =
        attention_gradient(all.scoring, all.queries, all.keys, all.v, widen(y[0]), widen(dy[0]), all.places_are_numbers);
    Values results(operands.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::size_t operand = i < 3 ? i : 3 + static_cast<std::size_t>(op.has_mask);
      results[operand] = cast(reshape(gradients[i], operands[operand].shape()), operands[operand].dtype());
    }
    return results;
  }
  /// By hand, so that a batch of attentions stays one.
  static Values batch(const Attention& op, In operands, const std::vector<bool>& batched, const Dim& size) {
    Values all(operands.begin(), operands.end());
    const int rank = operands[0].rank() + (batched[0] ? 0 : 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      Dims shape = all[i].shape();
      if (i < 3 && !batched[i]) {
        shape.insert(shape.begin(), size);
        all[i] = broadcast_to(all[i], shape);
      }
      const bool is_positions = op.has_positions && i + 1 == all.size();
      const auto missing = (is_positions ? rank - 2 : rank) - std::ssize(shape);
      if (i < 3 || !batched[i] || missing == 0) continue;
      shape.insert(shape.begin() + 1, static_cast<std::size_t>(missing), Dim(1));
      all[i] = reshape(all[i], shape);
    }
    return {Op<Attention>().of(op, all)};
  }
  static std::vector<Sample> samples() {
    const Sample::Operand q{{f32, {2, 4, 3, 8}}}, kv{{f32, {2, 2, 5, 8}}}, all_heads{{f32, {2, 4, 5, 8}}},
        mask{{boolean, {2, 1, 3, 5}}, 0, 1}, bias{{f32, {1, 4, 1, 5}}}, positions{{i32, {1, 3}}, -1, 5}, half{{bf16, {1, 2, 3, 4}}},
        wide{{f64, {1, 2, 3, 4}}};
    return {{{q, all_heads, all_heads}, attrs_of(Attention{}), 4e-6},
            {{q, kv, kv}, attrs_of(Attention{.scale = 0.7, .softcap = 2, .causal = true}), 4e-6},
            {{q, kv, kv, mask}, attrs_of(Attention{.has_mask = true}), 4e-6},
            {{q, kv, kv, bias}, attrs_of(Attention{.window = 2, .has_bias = true}), 4e-6},
            {{q, kv, kv, mask, bias, positions},
             attrs_of(Attention{
                 .scale = 0.5, .softcap = 3, .causal = true, .window = 4, .has_mask = true, .has_bias = true, .has_positions = true}),
             4e-6},
            {{q, kv, kv}, attrs_of(Attention{.int16 = true}), 4e-6},
            {{q, kv, kv}, attrs_of(Attention{.exact = true}), 4e-6},
            {{half, half, half}, attrs_of(Attention{.causal = true}), 4e-6},
            {{wide, wide, wide}, attrs_of(Attention{.causal = true}), 4e-6}};
  }
};
const Op<Attention> attention_op;

Value attention_of(Value q, Value k, Value v, const AttentionOptions& options, bool int16, bool exact) {
  const DType dtype = promote(q.dtype(), promote(k.dtype(), v.dtype()));
  q = cast(q, dtype), k = cast(k, dtype), v = cast(v, dtype);
  Values operands{q, k, v};
  // As many axes as the scores (the positions: without heads and keys); the op checks what comes in.
  if (options.mask) operands.push_back(with_rank(options.mask, q.rank()));
  if (options.bias) operands.push_back(with_rank(options.bias, q.rank()));
  if (options.positions) operands.push_back(options.positions.rank() == 0 ? options.positions : with_rank(options.positions, q.rank() - 2));
  return attention_op.of({options.scale, options.softcap, options.causal, options.window, int16, exact, bool(options.mask),
                          bool(options.bias), bool(options.positions)},
                         operands);
}

}  // namespace

/// softmax(q k^T * scale) v for each head: q (B, H, Sq, D), k (B, Hkv, Sk, D), v (B, Hkv, Sk, Dv), H a multiple of Hkv (each run of
/// H / Hkv heads shares one head of keys); the result is (B, H, Sq, Dv). Scores are kept in f32 at least. In this order: scale, soft cap,
/// bias, then the masks; a row that sees no key gives zeros, and takes no gradient. Other layouts are transposes, which cost nothing.
Value attention(Operand q, Operand k, Operand v, const AttentionOptions& options /*= {}*/) {
  return attention_of(q, k, v, options, false, false);
}

Value rounded_attention(Value q, Value k, Value v, const AttentionOptions& options) { return attention_of(q, k, v, options, true, false); }

Value exact_attention(Value q, Value k, Value v, const AttentionOptions& options) { return attention_of(q, k, v, options, false, true); }

}  // namespace rlx
