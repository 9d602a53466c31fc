// Connectionist temporal classification: the likelihood of a label sequence under frames of class probabilities, without an alignment.

#include "ops/loss/reduced.h"
#include "ops/wide.h"

namespace rlx {
namespace {

// log(sum(e^x)) along `axis`; a line of only -infinity gives -infinity, with a zero derivative.
Value log_of_sum(Value x, std::int64_t axis) {
  Value largest = stop_gradient(reduce_max(x, {axis})), none = eq(largest, like(x, -infinity));
  Value total = sum(exp(x - expand_dims(select(none, like(x, 0), largest), {axis})), {axis});
  return log(select(none, like(x, 1), total)) + largest;
}

// x (N, L) moved by `count` places towards the end of its rows.
Value moved(Value x, std::int64_t count, double fill) { return pad(x, {0, count}, {0, -count}, {}, fill); }

struct CtcLoss {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "ctc_loss";
  static constexpr std::string_view formula =
      "-log of the probability of all alignments of each target with its frames (Graves et al. 2006, eq. 6-8, in logarithms); operands: "
      "log-probabilities (T, N, C), targets (N, S), lengths of the frames (N) and of the targets (N)";
  static constexpr std::array<int, 3> integer_operands{1, 2, 3};
  std::int64_t blank = 0;
  bool zero_infinity = false;
  static auto fields() { return Fields<&CtcLoss::blank, &CtcLoss::zero_infinity>{}; }

  static void check(const CtcLoss& op, Value x, Value targets, Value frames, Value lengths) {
    check_float(name, x);
    bool fits = x.rank() == 3 && targets.rank() == 2 && targets.dim(0) == x.dim(1);
    for (Value v : {frames, lengths}) fits = fits && v.rank() == 1 && v.dim(0) == x.dim(1) && is_integer(v.dtype());
    if (!fits || !is_integer(targets.dtype()))
      fail("rlx.ctc_loss: log_probabilities {}, targets {}, lengths {} and {} (allowed: [T, N, C], and integers [N, S], [N], [N])",
           x.type().to_string(), targets.type().to_string(), frames.type().to_string(), lengths.type().to_string());
    if (op.blank < 0 || !(x.dim(2) - 1 - op.blank).known_non_negative())
      fail("rlx.ctc_loss: blank {} for {} (allowed: 0..C-1)", op.blank, x.type().to_string());
  }
  // Each target with blanks between, before and behind: (N, 2 S + 1).
  static Value with_blanks(const CtcLoss& op, Value targets) {
    const Dim rows = targets.dim(0), size = targets.dim(1);
    auto blanks = [&](const Dim& columns) { return full(targets, {rows, columns}, static_cast<double>(op.blank), i32); };
    return concat({reshape(stack({blanks(size), targets}, -1), {rows, size * 2}), blanks(1)}, 1);
  }
  static Value body(const CtcLoss& op, Value log_probabilities, Value targets, Value frames, Value lengths) {
    check(op, log_probabilities, targets, frames, lengths);
    Value x = widen(log_probabilities), labels = with_blanks(op, cast(targets, i32)), place = iota(x, {1, labels.dim(1)}, i32, 1);
    Value frame_count = expand_dims(cast(frames, i32), {1}), end = expand_dims(cast(lengths, i32), {1}) * 2;
    // A label may follow the one before it without a blank, unless they are equal.
    Value skips = logical_and(ne(labels, scalar(labels, static_cast<double>(op.blank), i32)), ne(labels, moved(labels, 2, -1)));
    Value emitted = take_along_axis(x, expand_dims(labels, {0}), 2);  // (T, N, 2 S + 1)
    Value never = like(x, -infinity), start = select(eq(place, scalar(x, 0, i32)), like(x, 0), never);
    auto step = [&](const Values& carry, const Values& at) -> std::pair<Values, Values> {
      Value stay = carry[0], next = moved(stay, 1, -infinity), skip = select(skips, moved(stay, 2, -infinity), never);
      Value paths = log_of_sum(stack({stay, next, skip}, -1), -1) + at[0];
      return {{select(lt(at[1], frame_count), paths, stay)}, {}};
    };
    Value last = scan(step, {broadcast_to(start, labels.shape())}, {emitted, iota(x, {x.dim(0)}, i32, 0)})[0];
    Value ends = logical_or(eq(place, end), eq(place, end - scalar(end, 1, i32)));
    Value loss = -log_of_sum(select(ends, last, never), 1);
    if (op.zero_infinity) loss = select(eq(loss, like(loss, infinity)), like(loss, 0), loss);
    return cast(loss, log_probabilities.dtype());
  }
  static std::vector<Sample> samples() {
    auto operands = [](DType t, std::int64_t steps) {
      return std::vector<Sample::Operand>{{{t, {steps, 3, 4}}, -3, -0.1}, {{i32, {3, 2}}, 1, 3}, {{i64, {3}}, 4, 5}, {{i32, {3}}, 0, 2}};
    };
    return {{operands(f32, 5), attrs_of(CtcLoss{0, false}), 4e-6},
            {operands(bf16, 5), attrs_of(CtcLoss{3, false}), 4e-6},
            {operands(f32, 1), attrs_of(CtcLoss{0, true}), 4e-6},
            {operands(f32, 1), attrs_of(CtcLoss{0, false}), 4e-6, false}};  // some losses are infinite
  }
};
const Op<CtcLoss> ctc_loss_op;

}  // namespace

/// The negative log-likelihood of target label sequences under log-probabilities (T, N, C): targets [N, S] hold classes other than
/// `blank`, padded with anything behind target_lengths [N]; input_lengths [N] are the frames that count, 0..T. A target that no alignment
/// gives costs infinity, or 0 with zero_infinity, and has a zero gradient. mean divides each loss by its target's length (at least 1)
/// first, as PyTorch does. Source: Graves et al. 2006. Throws Error when shapes do not fit.
Value ctc_loss(Operand log_probabilities, Operand targets, Operand input_lengths, Operand target_lengths, std::int64_t blank /*= 0*/,
               Reduction reduction /*= Reduction::mean*/, bool zero_infinity /*= false*/) {
  Value loss = ctc_loss_op({blank, zero_infinity}, log_probabilities, targets, input_lengths, target_lengths);
  if (reduction == Reduction::mean)
    loss = loss / cast(max(target_lengths, scalar(target_lengths, 1, target_lengths.dtype())), loss.dtype());
  return reduced(loss, reduction);
}

}  // namespace rlx
