// Choosing the next token from logits.
#include <cmath>

#include "ops/wide.h"

namespace rlx {
namespace {

// Candidates along the last axis; ids is null while position and id agree. Removed ones have the logit -infinity.
struct Candidates {
  Value logits, ids;
};

Value positions(Value x) { return iota(x, x.shape(), i32, x.rank() - 1); }

Candidates keep(Candidates c, Value condition) { return {select(condition, c.logits, like(c.logits, -infinity)), c.ids}; }

Candidates sorted(Candidates c) {
  const Values both = sort({c.logits, c.ids ? c.ids : positions(c.logits)}, 1, -1, true);
  return {both[0], both[1]};
}

// The elements of an order until their probabilities add up to `mass`, the one that gets there included.
Candidates keep_mass(Candidates c, double mass) {
  Value before = cumsum(softmax(c.logits), -1, true);
  return keep(c, lt(before, like(before, mass)));
}

Value penalised(Value logits, Value counts, const SampleOptions& options) {
  Value times = cast(counts, logits.dtype()), zero = like(logits, 0);
  Value seen = gt(times, zero);
  Value scaled = select(gt(logits, zero), logits / options.repetition_penalty, logits * options.repetition_penalty);
  return select(seen, scaled - times * options.frequency_penalty - options.presence_penalty, logits);
}

// The k largest, in falling order.
Candidates largest(Candidates c, std::int64_t k) {
  const Dim& size = c.logits.dim(-1);
  if (size.is_static() && k >= size.value()) return sorted(c);
  if (size.is_static()) {
    const Values found = top_k(c.logits, k);
    return {found[0], cast(found[1], i32)};
  }
  c = sorted(c);
  return keep(c, lt(positions(c.logits), scalar(c.logits, static_cast<double>(k), i32)));
}

// Locally typical sampling (Meister et al. 2022): the order is by the distance of -log p from the entropy.
Candidates typical(Candidates c, double mass) {
  Value log_p = log_softmax(c.logits), p = exp(log_p), zero = like(p, 0);
  Value possible = gt(p, zero);
  Value entropy = -sum(select(possible, p * log_p, zero), {-1}, true);
  Value distance = select(possible, abs(-log_p - entropy), like(p, infinity));
  const Values ordered = sort({distance, c.logits, c.ids ? c.ids : positions(c.logits)}, 1, -1, false);
  return sorted(keep_mass({ordered[1], ordered[2]}, mass));
}

// The first position whose cumulative probability exceeds uniform.
Value draw(Candidates c, double temperature, Value uniform) {
  Value p = softmax(c.logits / temperature), cumulative = cumsum(p, -1), rank = positions(p);
  Value total = slice_axis(cumulative, -1, p.dim(-1) - 1, p.dim(-1));
  Value threshold = total * reshape(cast(uniform, p.dtype()), total.shape());
  Value position = sum(cast(le(cumulative, threshold), i32), {-1}, true);
  // Where the threshold rounds up to the total, the last candidate is meant.
  Value last = reduce_max(select(gt(p, like(p, 0)), rank, scalar(rank, 0, i32)), {-1}, true);
  position = min(position, last);
  return sum(select(eq(rank, position), c.ids ? c.ids : rank, scalar(rank, 0, i32)), {-1});
}

void check(std::string_view name, double value, bool holds, std::string_view allowed) {
  if (!holds) fail("rlx.sample_token: {} {} (allowed: {})", name, value, allowed);
}

struct SampleToken {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "sample_token";
  static constexpr std::string_view formula =
      "penalties, top-k, typical, top-p, min-p, temperature; then the token where the cumulative probability passes `uniform`";
  double repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::int64_t top_k = 0;
  double typical_p = 1, top_p = 1, min_p = 0, temperature = 1;
  static auto fields() {
    return Fields<&SampleToken::repetition_penalty, &SampleToken::frequency_penalty, &SampleToken::presence_penalty, &SampleToken::top_k,
                  &SampleToken::typical_p, &SampleToken::top_p, &SampleToken::min_p, &SampleToken::temperature>{};
  }
  static SampleToken of(const SampleOptions& o) {
    return {o.repetition_penalty, o.frequency_penalty, o.presence_penalty, o.top_k, o.typical_p, o.top_p, o.min_p, o.temperature};
  }
  static void check_operands(std::span<const Value> x) {
    if (x.size() < 2 || x.size() > 3) fail("rlx.sample_token: {} operands (allowed: logits, uniform and perhaps counts)", x.size());
    const Type &logits = x[0].type(), &uniform = x[1].type();
    if (logits.rank() < 1 || !(uniform.shape == Dims(logits.shape.begin(), logits.shape.end() - 1)))
      fail("rlx.sample_token: uniform is {} beside logits {} (allowed: their shape without the last axis)", uniform.to_string(),
           logits.to_string());
    check_float(name, x[0]);
  }
  static void check_options(const SampleToken& op) {
    check("repetition_penalty", op.repetition_penalty, op.repetition_penalty > 0, "> 0");
    check("top_k", static_cast<double>(op.top_k), op.top_k >= 0, ">= 0");
    check("typical_p", op.typical_p, op.typical_p > 0 && op.typical_p <= 1, "above 0, at most 1");
    check("top_p", op.top_p, op.top_p > 0 && op.top_p <= 1, "above 0, at most 1");
    check("min_p", op.min_p, op.min_p >= 0 && op.min_p <= 1, "0..1");
    check("temperature", op.temperature, op.temperature >= 0, ">= 0");
  }
  static Value body(const SampleToken& op, std::span<const Value> x) {
    check_operands(x);
    check_options(op);
    Candidates c{widen(x[0]), {}};
    if (x.size() == 3) c.logits = penalised(c.logits, x[2], {op.repetition_penalty, op.frequency_penalty, op.presence_penalty});
    if (op.temperature == 0) return cast(argmax(c.logits, -1), i32);
    if (op.top_k > 0) c = largest(c, op.top_k);
    if (op.typical_p < 1) c = typical(c, op.typical_p);
    if (op.top_p < 1) c = keep_mass(c.ids ? c : sorted(c), op.top_p);
    if (op.min_p > 0) c = keep(c, ge(c.logits, reduce_max(c.logits, {-1}, true) + std::log(op.min_p)));
    return draw(c, op.temperature, x[1]);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (const SampleOptions& o : {SampleOptions{}, SampleOptions{.top_k = 3},
                                   SampleOptions{.typical_p = 0.6, .top_p = 0.9, .temperature = 0.7}, SampleOptions{.temperature = 0}})
      all.push_back({{{{f32, {3, 8}}, -3, 3}, {{f32, {3}}, 0, 0.999}, {{i32, {3, 8}}, 0, 2}}, attrs_of(of(o)), 0, false});
    return all;
  }
};
const Op<SampleToken> sample_token_op;

}  // namespace

/// A token id (i32 [B]) for each row of logits [B, V]. The steps, each on what the one before left, with probabilities renewed:
/// penalties (for the tokens with counts [B, V] > 0), top-k, typical, top-p, min-p, temperature, then the first token whose cumulative
/// probability exceeds `uniform` [B], in 0..1 without 1 (random_uniform). Temperature 0 takes the largest logit after the penalties, the
/// lowest id on ties, and no other filter. A null `counts` applies no penalty. Throws Error for options out of range.
Value sample_token(Operand logits, Operand uniform, SampleOptions options /*= {}*/, Operand counts /*= {}*/) {
  Values operands{logits, uniform};
  if (counts) operands.push_back(broadcast_to(counts, logits.shape()));
  return sample_token_op.of(SampleToken::of(options), operands);
}

}  // namespace rlx
