// Linear recurrences by other ops.
#include "ops/reduction/recurrence_steps.h"

#include <cmath>

#include "ops/wide.h"

namespace rlx {
namespace {

// The running results along axis 0 of a and b, and the running products of a.
struct Running {
  Value product, result;
};
Running running(Value a, Value b) {
  const auto step = [](const Values& carry, const Values& x) {
    const Values next{x[0] * carry[0], x[0] * carry[1] + x[1]};
    return std::pair{next, next};
  };
  Dims shape(a.shape().begin() + 1, a.shape().end());
  const Values all = scan(step, {full(a, shape, 1, a.dtype()), full(a, shape, 0, a.dtype())}, {a, b});
  return {all[2], all[3]};
}

Value one_by_one(Value a, Value b) {  // (n, ...)
  const auto step = [](const Values& carry, const Values& x) {
    const Value next = x[0] * carry[0] + x[1];
    return std::pair{Values{next}, Values{next}};
  };
  return scan(step, {full(a, Dims(a.shape().begin() + 1, a.shape().end()), 0, a.dtype())}, {a, b})[1];
}

// All blocks of about sqrt(n) elements at once, then what came out of the block before each: times the product of the factors since.
Value by_blocks(Value a, Value b) {  // (n, ...)
  const std::int64_t n = a.dim(0).value(), length = std::llround(std::ceil(std::sqrt(static_cast<double>(n)))),
                     blocks = (n + length - 1) / length;
  const auto cut = [&](Value x) {
    Dims none(x.shape().size(), 0), more = none, shape = x.shape();
    more[0] = blocks * length - n, shape[0] = length;
    shape.insert(shape.begin(), blocks);
    return move_axis(reshape(pad(x, none, more), shape), 1, 0);  // (length, blocks, ...)
  };
  const Running inside = running(cut(a), cut(b));
  const auto last = [&](Value x) { return squeeze(slice_axis(x, 0, length - 1, length), {0}); };
  const Value before = moved_by_one(one_by_one(last(inside.product), last(inside.result)), 0, false, 0);  // (blocks, ...)
  const Value zero = zeros_like(before);
  const Value more = select(eq(before, zero), zero, before * inside.product);  // products may be infinite
  const Value y = move_axis(inside.result + more, 0, 1);
  Dims shape = a.shape();
  shape[0] = blocks * length;
  return slice_axis(reshape(y, shape), 0, 0, n);
}

}  // namespace

Value linear_recurrence_in_steps(Value a, Value b, std::int64_t axis, bool reverse) {
  constexpr std::int64_t most_one_by_one = 64;
  const DType type = a.dtype();
  const Dim& n = a.dim(axis);
  if (n == Dim(0)) return b;
  const auto forwards = [&](Value x) { return reverse ? flip(x, {0}) : x; };
  const auto arranged = [&](Value x) { return forwards(move_axis(is_complex(type) ? x : widen(x), axis, 0)); };
  Value factor = arranged(a), first = eq(iota(a, factor.shape(), i32), scalar(a, 0, i32));
  factor = select(first, zeros_like(factor), factor);  // nothing comes before the first, be its factor infinite
  const bool is_short = !n.is_static() || n.value() <= most_one_by_one;
  const Value y = is_short ? one_by_one(factor, arranged(b)) : by_blocks(factor, arranged(b));
  return cast(move_axis(forwards(y), 0, axis), type);
}

}  // namespace rlx
