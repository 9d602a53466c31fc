// Losses, with PyTorch's semantics: an op gives the loss of each element (or example), the builder reduces.
#include <limits>

#include "ops/loss/reduced.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

// Class numbers in a signed type that holds every class and a negative ignore_index.
Value signed_classes(Value targets) {
  const int bits = info(targets.dtype()).bits;
  return cast(targets, bits < 32 || targets.dtype() == i32 ? i32 : i64);
}

// The positions along `axis` of a value: (1, .., C, .., 1).
Value class_numbers(Value x, std::int64_t axis, DType dtype) {
  Dims row(x.shape().size(), 1);
  row[static_cast<std::size_t>(axis)] = x.dim(axis);
  return iota(x, row, dtype, axis);
}

void check_smoothing(double share) {
  if (!(share >= 0 && share <= 1)) fail("rlx.cross_entropy: label_smoothing {} (allowed: 0..1)", share);
}

struct Nll {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "nll";
  static constexpr std::string_view formula =
      "-weight[t] * ((1 - s) x[t] + s / C * sum x), x log-probabilities (with `logits`: log_softmax of x) along `axis`, t the target, s "
      "the smoothing "
      "(whose sum takes each class's weight); results: the loss and weight[t], both 0 where t is ignore_index or no class";
  static constexpr std::array<int, 1> integer_operands{1};
  Axis axis = -1;
  bool logits = false;
  double label_smoothing = 0;
  std::int64_t ignore_index = -100;
  bool has_weight = false;
  static auto fields() { return Fields<&Nll::axis, &Nll::logits, &Nll::label_smoothing, &Nll::ignore_index, &Nll::has_weight>{}; }
  static Values body(const Nll& op, In operands) {
    if (operands.size() != 2u + op.has_weight) fail("rlx.nll: {} operands, the attributes say {}", operands.size(), 2 + op.has_weight);
    Value x = widen(operands[0]), targets = operands[1];
    check_float(name, operands[0]);
    check_smoothing(op.label_smoothing);
    if (op.has_weight && !(broadcast_shapes(name, operands[2].shape(), x.shape()) == x.shape()))
      fail("rlx.nll: class weights {} do not broadcast to {}", operands[2].type().to_string(), x.type().to_string());
    Dims examples = x.shape();
    examples.erase(examples.begin() + op.axis);
    if (!is_integer(targets.dtype()) || !(targets.shape() == examples))
      fail("rlx.nll: targets {} do not fit {} (allowed: integers of shape {})", targets.type().to_string(), operands[0].type().to_string(),
           to_string(examples));
    Value rows = op.logits ? log_softmax(x, op.axis) : x, zero = like(x, 0);
    Value weight = op.has_weight ? cast(operands[2], x.dtype()) : Value(), weighted = weight ? rows * weight : rows;
    Dims column = x.shape();
    column[static_cast<std::size_t>(op.axis)] = 1;
    Value wanted = reshape(signed_classes(targets), column);
    Value kept = ne(wanted, scalar(wanted, static_cast<double>(op.ignore_index), wanted.dtype()));
    // Rows that do not count are masked, not multiplied by 0: neither infinities nor NaN come from them.
    Value chosen = logical_and(eq(wanted, class_numbers(x, op.axis, wanted.dtype())), kept);
    Value loss = -sum(select(chosen, weighted, zero), {op.axis});
    Value weights = sum(select(chosen, weight ? weight : like(x, 1), zero), {op.axis});
    if (op.label_smoothing != 0) {
      Value spread = -sum(weighted, {op.axis}) / size_of(x, {op.axis}, x.dtype());
      Value inside = any(chosen, {op.axis});
      loss = loss * (1 - op.label_smoothing) + select(inside, spread, zero) * op.label_smoothing;
    }
    return {cast(loss, operands[0].dtype()), cast(weights, operands[0].dtype())};
  }
  static std::vector<Sample> samples() {
    const Sample::Operand x{{f32, {6, 5}}}, targets{{i64, {6}}, 0, 4}, weight{{f32, {1, 5}}, 0.5, 2};
    return {{{x, targets}, attrs_of(Nll{1, true, 0, -100, false}), 4e-6},
            {{x, targets}, attrs_of(Nll{1, true, 0.1, 2, false}), 4e-6},
            {{x, targets, weight}, attrs_of(Nll{1, true, 0.2, 0, true}), 4e-6},
            {{x, targets, weight}, attrs_of(Nll{1, false, 0, -100, true}), 4e-6},
            {{{{f32, {2, 5, 3}}}, {{i32, {2, 3}}, 0, 4}}, attrs_of(Nll{1, true, 0, -100, false}), 4e-6},
            {{{{bf16, {4, 5}}}, {{i32, {4}}, 0, 4}}, attrs_of(Nll{1, true, 0, -100, false}), 4e-6}};
  }
};
const Op<Nll> nll_op;

struct SoftCrossEntropy {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "cross_entropy_dense";
  static constexpr std::string_view formula = "-sum of ((1 - s) * target + s / C) * log_softmax(x) along `axis`, s the smoothing";
  Axis axis = -1;
  double label_smoothing = 0;
  static auto fields() { return Fields<&SoftCrossEntropy::axis, &SoftCrossEntropy::label_smoothing>{}; }
  static Value body(const SoftCrossEntropy& op, Value x, Value targets) {
    check_float(name, x);
    check_smoothing(op.label_smoothing);
    if (!is_float(targets.dtype()) || !(targets.shape() == x.shape()))
      fail("rlx.cross_entropy: dense targets {} do not fit logits {}", targets.type().to_string(), x.type().to_string());
    Value rows = log_softmax(widen(x), op.axis), goal = cast(targets, rows.dtype());
    if (op.label_smoothing != 0) goal = goal * (1 - op.label_smoothing) + op.label_smoothing / size_of(x, {op.axis}, rows.dtype());
    return cast(-sum(goal * rows, {op.axis}), x.dtype());
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {6, 5}}}, {{f32, {6, 5}}, 0, 1}}, attrs_of(SoftCrossEntropy{1, 0}), 4e-6},
            {{{{f32, {2, 5, 3}}}, {{f32, {2, 5, 3}}, 0, 1}}, attrs_of(SoftCrossEntropy{1, 0.1}), 4e-6}};
  }
};
const Op<SoftCrossEntropy> soft_cross_entropy_op;

/// What losses of pairs of elements share: a body on widened operands, and samples.
template <class Self>
struct PairLoss {
  static constexpr OpKind kind = OpKind::composite;
  static auto fields() { return Fields<>{}; }
  static std::vector<Sample> samples() { return elementwise_samples({}, -2, 2, true, 2); }
};
// A loss of two operands of one type, computed in the accumulation type.
template <class Rule>
Value pairwise(std::string_view op, Value x, Value target, Rule rule) {
  check_float(op, x);
  return cast(rule(widen(x), widen(target)), x.dtype());
}

struct SquaredError : PairLoss<SquaredError> {
  static constexpr std::string_view name = "squared_error";
  static constexpr std::string_view formula = "(x - target)^2";
  static Value body(const SquaredError&, Value x, Value target) {
    return pairwise(name, x, target, [](Value a, Value b) { return square(a - b); });
  }
};
const Op<SquaredError> squared_error_op;

struct Huber {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "huber";
  static constexpr std::string_view formula = "d^2 / 2 where d = |x - target| <= delta, else delta * (d - delta / 2)";
  double delta = 1;
  static auto fields() { return Fields<&Huber::delta>{}; }
  static Value body(const Huber& op, Value x, Value target) {
    if (!(op.delta > 0)) fail("rlx.huber: delta {} (allowed: > 0)", op.delta);
    return pairwise(name, x, target, [&](Value a, Value b) {
      Value d = abs(a - b);
      return select(le(d, like(d, op.delta)), d * d * 0.5, (d - 0.5 * op.delta) * op.delta);
    });
  }
  static std::vector<Sample> samples() { return elementwise_samples(attrs_of(Huber{0.7}), -2, 2, true, 2); }
};
const Op<Huber> huber_op;

struct BinaryCrossEntropy : PairLoss<BinaryCrossEntropy> {
  static constexpr std::string_view name = "binary_cross_entropy";
  static constexpr std::string_view formula = "-(target * log x + (1 - target) * log(1 - x)), both logarithms at least -100";
  static Value bounded(Value logarithm) { return max(logarithm, like(logarithm, -100)); }
  static Value body(const BinaryCrossEntropy&, Value x, Value target) {
    return pairwise(name, x, target, [](Value p, Value t) { return -(t * bounded(log(p)) + (1 - t) * bounded(log1p(-p))); });
  }
  // By hand: at 0 and 1 the logarithms have no derivative, the loss a large one.
  static Values jvp(const BinaryCrossEntropy&, In in, In, In d) {
    Value p = widen(in[0]), t = widen(in[1]), both = p * (1 - p);
    Value by_p = d[0] ? widen(d[0]) * ((p - t) / max(both, like(p, 1e-12))) : Value();
    Value by_t = d[1] ? widen(d[1]) * (bounded(log1p(-p)) - bounded(log(p))) : Value();
    return {cast(!by_p ? by_t : !by_t ? by_p : by_p + by_t, in[0].dtype())};
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, 0.05, 0.95, true, 2); }
};
const Op<BinaryCrossEntropy> binary_cross_entropy_op;

struct BinaryCrossEntropyLogits {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "binary_cross_entropy_logits";
  static constexpr std::string_view formula =
      "(1 - target) * x + (1 + (w - 1) * target) * softplus(-x), w the weight of positives (operand 2, when there is one)";
  bool has_weight = false;
  static auto fields() { return Fields<&BinaryCrossEntropyLogits::has_weight>{}; }
  static Value body(const BinaryCrossEntropyLogits& op, In operands) {
    if (operands.size() != 2u + op.has_weight) fail("rlx.{}: {} operands, the attributes say {}", name, operands.size(), 2 + op.has_weight);
    return pairwise(name, operands[0], operands[1], [&](Value x, Value t) {
      Value penalty = softplus(-x);
      return (1 - t) * x + (op.has_weight ? penalty * ((widen(operands[2]) - 1) * t + 1) : penalty);
    });
  }
  static std::vector<Sample> samples() {
    auto all = elementwise_samples(attrs_of(BinaryCrossEntropyLogits{false}), -3, 3, true, 2);
    auto more = elementwise_samples(attrs_of(BinaryCrossEntropyLogits{true}), -3, 3, true, 3);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};
const Op<BinaryCrossEntropyLogits> binary_cross_entropy_logits_op;

struct KlDivergence {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "kl_divergence";
  static constexpr std::string_view formula = "target * (log target - x), 0 where target is 0; with `log_target`: e^target * (target - x)";
  bool log_target = false;
  static auto fields() { return Fields<&KlDivergence::log_target>{}; }
  static Value body(const KlDivergence& op, Value x, Value target) {
    return pairwise(name, x, target, [&](Value a, Value t) {
      if (op.log_target) return exp(t) * (t - a);
      Value positive = gt(t, like(t, 0)), safe = select(positive, t, like(t, 1));
      return select(positive, t * (log(safe) - a), like(t, 0));
    });
  }
  static std::vector<Sample> samples() {
    auto all = elementwise_samples(attrs_of(KlDivergence{true}), -3, -0.1, true, 2);
    auto more = elementwise_samples(attrs_of(KlDivergence{false}), 0.1, 0.9, true, 2);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};
const Op<KlDivergence> kl_divergence_op;

struct CosineSimilarity {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "cosine_similarity";
  static constexpr std::string_view formula = "sum(x * z) / (max(|x|, eps) * max(|z|, eps)) along `axis`";
  Axis axis = -1;
  double eps = 1e-8;
  static auto fields() { return Fields<&CosineSimilarity::axis, &CosineSimilarity::eps>{}; }
  static Value body(const CosineSimilarity& op, Value x, Value z) {
    return pairwise(name, x, z, [&](Value a, Value b) {
      return sum(l2_normalize(a, {op.axis}, op.eps) * l2_normalize(b, {op.axis}, op.eps), {op.axis});
    });
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 6}}}, {{f32, {4, 6}}}}, attrs_of(CosineSimilarity{1}), 4e-6},
            {{{{f32, {4, 6}}}, {{f32, {4, 6}}}}, attrs_of(CosineSimilarity{0}), 4e-6}};
  }
};
const Op<CosineSimilarity> cosine_similarity_op;

// Class weights (C) as (1, .., C, .., 1) beside x.
Value class_weights(std::string_view op, Value weight, Value x, std::int64_t axis) {
  if (!weight) return weight;
  Dims shape(x.shape().size(), 1);
  shape[static_cast<std::size_t>(axis)] = x.dim(axis);
  if (weight.rank() != 1 || !(weight.dim(0) == x.dim(axis)))
    fail("rlx.{}: class weights {} do not fit {} (allowed: [{}])", op, weight.type().to_string(), x.type().to_string(),
         x.dim(axis).to_string());
  return reshape(weight, shape);
}

// Both results of nll, reduced: mean divides by the sum of the weights, which is 0 (so that NaN comes out) when all is ignored.
Value weighted_loss(const Nll& op, Value x, Value targets, Value weight, Reduction reduction) {
  Values operands{x, targets};
  if (weight) operands.push_back(weight);
  const Values results = nll_op.all(op, operands);
  if (reduction == Reduction::none) return results[0];
  if (reduction == Reduction::sum) return sum_all(results[0]);
  // No target counts: the mean is NaN, but no logit moves it, so the NaN must not come out of a division by zero.
  const Value total = sum_all(results[1]), empty = eq(total, scalar(total, 0, total.dtype()));
  const Value mean = sum_all(results[0]) / select(empty, scalar(total, 1, total.dtype()), total);
  return select(empty, scalar(mean, std::numeric_limits<double>::quiet_NaN(), mean.dtype()), mean);
}

}  // namespace

/// Cross-entropy of logits along `axis` with integer targets (logits' shape without the axis) or dense ones (floats of logits' shape).
/// label_smoothing s spreads that share over all classes. Targets equal to ignore_index, or no class, do not count; weight: [C] or null.
/// mean divides by the weights of the targets that count (none: NaN, with a zero gradient); with dense targets by the number of rows.
Value cross_entropy(Operand logits, Operand targets, Reduction reduction /*= Reduction::mean*/, double label_smoothing /*= 0*/,
                    std::int64_t ignore_index /*= -100*/, Axis axis /*= -1*/, Operand weight /*= {}*/) {
  axis = normalize_axis("cross_entropy", axis, logits.type());
  if (is_float(targets.dtype())) {
    if (weight) fail("rlx.cross_entropy: class weights need integer targets, given {}", targets.type().to_string());
    return reduced(soft_cross_entropy_op({axis, label_smoothing}, logits, targets), reduction);
  }
  weight = class_weights("cross_entropy", weight, logits, axis);
  return weighted_loss({axis, true, label_smoothing, ignore_index, bool(weight)}, logits, targets, weight, reduction);
}
/// The negative log-likelihood of integer targets under log-probabilities along `axis`; ignore_index, weight and mean as in cross_entropy.
Value nll(Operand log_probabilities, Operand targets, Reduction reduction /*= Reduction::mean*/, std::int64_t ignore_index /*= -100*/,
          Axis axis /*= -1*/, Operand weight /*= {}*/) {
  axis = normalize_axis("nll", axis, log_probabilities.type());
  weight = class_weights("nll", weight, log_probabilities, axis);
  return weighted_loss({axis, false, 0, ignore_index, bool(weight)}, log_probabilities, targets, weight, reduction);
}
/// (x - target)^2; the operands are promoted and broadcast. The result is of rank 0, or with Reduction::none of their shape; so it is for
/// the losses below.
Value mse(Operand x, Operand target, Reduction reduction /*= Reduction::mean*/) {
  std::tie(x, target) = match("mse", x, target);
  return reduced(squared_error_op({}, x, target), reduction);
}
/// |x - target|; derivative 0 where they are equal.
Value l1(Operand x, Operand target, Reduction reduction /*= Reduction::mean*/) { return reduced(abs(x - target), reduction); }
/// d^2 / 2 where d = |x - target| is at most delta, else delta * (d - delta / 2). Throws Error unless delta > 0.
Value huber(Operand x, Operand target, double delta /*= 1*/, Reduction reduction /*= Reduction::mean*/) {
  std::tie(x, target) = match("huber", x, target);
  return reduced(huber_op({delta}, x, target), reduction);
}
/// huber / beta: d^2 / (2 beta) where d = |x - target| is below beta, else d - beta / 2; beta 0 gives l1.
Value smooth_l1(Operand x, Operand target, double beta /*= 1*/, Reduction reduction /*= Reduction::mean*/) {
  return beta == 0 ? l1(x, target, reduction) : huber(x, target, beta, reduction) / beta;
}
/// Binary cross-entropy of probabilities x with targets in 0..1.
Value bce(Operand x, Operand target, Reduction reduction /*= Reduction::mean*/) {
  std::tie(x, target) = match("bce", x, target);
  return reduced(binary_cross_entropy_op({}, x, target), reduction);
}
/// Binary cross-entropy of logits x with targets in 0..1, without overflow; positive_weight (null, or broadcastable to x) multiplies the
/// loss of positives.
Value bce_with_logits(Operand x, Operand target, Operand positive_weight /*= {}*/, Reduction reduction /*= Reduction::mean*/) {
  std::tie(x, target) = match("bce_with_logits", x, target);
  if (!positive_weight) return reduced(binary_cross_entropy_logits_op({false}, x, target), reduction);
  return reduced(binary_cross_entropy_logits_op({true}, x, target, broadcast_to(cast(positive_weight, x.dtype()), x.shape())), reduction);
}
/// Kullback-Leibler divergence of each element from log-probabilities x to targets (probabilities, or their logarithms with log_target).
/// PyTorch's "batchmean" is the sum divided by the number of rows.
Value kl_div(Operand x, Operand target, bool log_target /*= false*/, Reduction reduction /*= Reduction::mean*/) {
  std::tie(x, target) = match("kl_div", x, target);
  return reduced(kl_divergence_op({log_target}, x, target), reduction);
}
/// The cosine of the angle between x and z along `axis`, which disappears; a norm below eps counts as eps. The operands broadcast.
Value cosine_similarity(Operand x, Operand z, Axis axis /*= -1*/, double eps /*= 1e-8*/) {
  std::tie(x, z) = match("cosine_similarity", x, z);
  return cosine_similarity_op({axis, eps}, x, z);
}
/// 1 - cosine where target is 1, max(0, cosine - margin) where it is -1, for rows of x and z along the last axis.
Value cosine_embedding(Operand x, Operand z, Operand target, double margin /*= 0*/, Reduction reduction /*= Reduction::mean*/) {
  Value cosine = cosine_similarity(x, z);
  return reduced(select(gt(target, like(target, 0)), 1 - cosine, relu(cosine - margin)), reduction);
}

}  // namespace rlx
