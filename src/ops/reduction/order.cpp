// Orders of lines, in steps that kernels compute: each element finds its place and is stored there.
#include "ops/reduction/order.h"

#include <cmath>
#include <limits>

#include "ops/structure/placed_elements.h"
#include "ops/wide.h"

namespace rlx {
namespace {

// Up to this length each element of a line is compared with all others.
constexpr std::int64_t short_line = 512;
// Longer ones are sorted by digits, from the last on. A place is counted in blocks, and then within one.
constexpr int digit_bits = 4, digits = 1 << digit_bits;
constexpr std::int64_t block = 64;

Value count(Value hits, std::int64_t axis) { return sum(cast(hits, i32), {axis}); }

// For each element of the last axis, how many of those in front of it are equal to it, and with `smaller` how many are smaller anywhere.
Value number_before(Value x, bool smaller) {
  const std::int64_t axis = x.rank();
  const Dim& n = x.shape().back();
  Value mine = expand_dims(x, {axis}), other = expand_dims(x, {axis - 1});
  Value in_front = lt(iota(x, {1, n}, i32, 1), iota(x, {n, 1}, i32, 0)), counts = logical_and(eq(other, mine), in_front);
  return count(smaller ? logical_or(lt(other, mine), counts) : counts, axis);
}

// The place of each element after a stable sort by one digit, which starts at bit `shift`. key: (lines, blocks * block).
Value places_by_digit(Value key, Value shift, DType position) {
  const Dim &lines = key.dim(0), &length = key.dim(1);
  const std::int64_t blocks = length.value() / block;
  Value digit = reshape(cast(logical_and(shr(key, shift), like(key, digits - 1)), i32), {lines, blocks, block});
  Value found = count(eq(expand_dims(digit, {1}), iota(key, {digits, 1, 1}, i32)), 3);  // (lines, digits, blocks)
  Value first = cumsum(reshape(cast(found, position), {lines, digits * blocks}), 1, true);
  Value slot = cast(digit, position) * static_cast<double>(blocks) + iota(key, {blocks, 1}, position);
  Value before = reshape(number_before(digit, false), {lines, length});
  return take_along_axis(first, reshape(slot, {lines, length}), 1) + cast(before, position);
}

// Whole blocks: the ranks behind the end are the greatest, and stay behind.
Order order_by_digits(Value key, int bits, Value order) {
  const Dim n = key.dim(1), behind = (n.upper() + block - 1) / block * block - n;
  key = logical_not(pad(logical_not(key), {0, 0}, {0, behind}));
  order = pad(order, {0, 0}, {0, behind});
  Value shifts = iota(key, {(bits + digit_bits - 1) / digit_bits}, key.dtype()) * digit_bits;
  const auto step = [&](const Values& carry, const Values& shift) {
    Value to = places_by_digit(carry[0], shift[0], order.dtype());
    return std::pair{Values{place(carry[0], to, key.dim(1)), place(carry[1], to, key.dim(1))}, Values{}};
  };
  const Values sorted = scan(step, {key, order}, {shifts});
  return {slice_axis(sorted[0], 1, 0, n), slice_axis(sorted[1], 1, 0, n)};
}

Ranks float_ranks(Value x) {
  const bool wide = x.dtype() == f64;
  const int bits = wide ? 64 : 32;
  if (!wide) x = cast(x, f32);
  Value raw = bitcast(x, wide ? u64 : u32), sign = like(raw, std::exp2(bits - 1));
  raw = select(eq(raw, sign), like(raw, 0), raw);  // -0 by its bits: kernels take subnormal numbers for zeros
  Value rank = select(lt(raw, sign), logical_or(raw, sign), logical_not(raw));
  return {select(ne(x, x), logical_not(like(raw, 0)), rank), bits};
}

Ranks integer_ranks(Value x) {
  const int bits = is_bool(x.dtype()) ? 1 : info(x.dtype()).bits;
  const DType unsigned_type = bits > 32 ? u64 : u32;
  if (!is_signed_int(x.dtype())) return {cast(x, unsigned_type), bits};
  Value raw = bitcast(cast(x, bits > 32 ? i64 : i32), unsigned_type);
  return {raw + like(raw, std::exp2(bits - 1)), bits};
}

}  // namespace

Ranks ranks_of(Value x, bool descending) {
  Ranks ranks = is_float(x.dtype()) ? float_ranks(x) : integer_ranks(x);
  if (!descending) return ranks;
  Value turned = logical_not(ranks.of);
  const int unused = info(turned.dtype()).bits - ranks.bits;
  return {unused == 0 ? turned : logical_and(turned, like(turned, std::exp2(ranks.bits) - 1)), ranks.bits};
}

Order sorted_order(const Ranks& ranks, Value before) {
  const Dim& n = ranks.of.dim(1);
  const DType position = n.upper() > std::numeric_limits<std::int32_t>::max() ? i64 : i32;
  Value key = before ? take_along_axis(ranks.of, before, 1) : ranks.of;
  if (!before) before = broadcast_to(iota(key, {n}, position), key.shape());
  if (n.upper() > short_line) return order_by_digits(key, ranks.bits, before);
  Value to = number_before(key, true);
  return {place(key, to, n), place(before, to, n)};
}

}  // namespace rlx
