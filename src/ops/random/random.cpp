// Random numbers from Philox4x32-10 (Salmon et al. 2011) on integer ops: the same key gives the same bits everywhere.
#include <array>
#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using philox::key_steps, philox::multipliers, philox::rounds;
using Block = std::array<Value, 4>;

// The high and low words of a 32-bit product.
std::pair<Value, Value> wide_product(double a, Value b) {
  Value product = cast(b, u64) * a;
  return {cast(shr(product, like(product, 32)), u32), cast(product, u32)};
}

Block philox_block(Block counter, Value key0, Value key1) {
  for (int round = 0; round < rounds; ++round) {
    if (round > 0) key0 = key0 + double{key_steps[0]}, key1 = key1 + double{key_steps[1]};
    auto [high0, low0] = wide_product(multipliers[0], counter[0]);
    auto [high1, low1] = wide_product(multipliers[1], counter[2]);
    counter = {logical_xor(logical_xor(high1, counter[1]), key0), low1, logical_xor(logical_xor(high0, counter[3]), key1), low0};
  }
  return counter;
}

Value element(Value x, std::int64_t i) {
  Dims shape = x.shape();
  shape.pop_back();
  return reshape(slice_axis(x, -1, i, i + 1), shape);
}

void check_key(std::string_view op, Value key) {
  if (key.dtype() != u32 || key.rank() != 1 || !(key.dim(0) == Dim(2)))
    fail("rlx.{}: the key is {} (allowed: u32[2])", op, key.type().to_string());
}

struct RandomBits {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "random_bits";
  static constexpr std::string_view formula = "u32: element i is word i mod 4 of Philox4x32-10 at counter (i / 4, 0, 0)";
  Dims shape;
  static auto fields() { return Fields<&RandomBits::shape>{}; }
  static Value body(const RandomBits& op, Value key) {
    check_key(name, key);
    Value index = iota(key, {product(op.shape)}, u64), block = shr(index, like(index, 2)), zero = like(key, 0);
    const Block words =
        philox_block({cast(block, u32), cast(shr(block, like(block, 32)), u32), zero, zero}, element(key, 0), element(key, 1));
    Value word = logical_and(index, like(index, 3)), bits = words[3];
    for (int i = 3; i-- > 0;) bits = select(eq(word, like(word, i)), words[static_cast<std::size_t>(i)], bits);
    return reshape(bits, op.shape);
  }
  static std::vector<Sample> samples() {
    return {{{{{u32, {2}}, 0, 4e9}}, attrs_of(RandomBits{{3, 5}}), 0, false}, {{{{u32, {2}}, 0, 4e9}}, attrs_of(RandomBits{{}}), 0, false}};
  }
};
const Op<RandomBits> random_bits_op;

Dims with_leading(const Dim& size, Dims shape) {
  shape.insert(shape.begin(), size);
  return shape;
}

Value row(Value x, std::int64_t i) { return reshape(slice_axis(x, 0, i, i + 1), Dims(x.shape().begin() + 1, x.shape().end())); }

int precision(DType t) {
  switch (t) {
    case DType::f64: return 53;
    case DType::f32: return 24;
    case DType::f16: return 11;
    case DType::bf16: return 8;
    default: fail("rlx.random_uniform: {} is not allowed (allowed: f64, f32, f16, bf16)", name(t));
  }
}

// Uniform integers 0..2^precision - 1 as floats, exact in the dtype.
Value uniform_steps(Value key, const Dims& shape, DType dtype) {
  const int digits = precision(dtype);
  if (digits <= 32) {
    Value bits = random_bits(key, shape);
    return cast(shr(bits, like(bits, 32 - digits)), dtype);
  }
  Value pair = random_bits(key, with_leading(2, shape)), high = cast(row(pair, 0), u64);
  Value bits = logical_or(shl(high, like(high, 32)), cast(row(pair, 1), u64));
  return cast(shr(bits, like(bits, 64 - digits)), dtype);
}

// Uniform in (0, 1], for logarithms.
Value uniform_above_zero(Value key, const Dims& shape, DType dtype) {
  return (uniform_steps(key, shape, dtype) + 1) * std::ldexp(1.0, -precision(dtype));
}

DType working_type(std::string_view op, DType dtype) {
  if (!is_float(dtype)) fail("rlx.{}: {} is not allowed (allowed: floats)", op, name(dtype));
  return accumulation_type(dtype);
}

}  // namespace

/// Philox4x32-10 itself: counter u32[..., 4] and key u32[2] give u32[..., 4].
Value philox_4x32(Operand counter, Operand key) {
  check_key("philox_4x32", key);
  if (counter.dtype() != u32 || counter.rank() == 0 || !(counter.dim(-1) == Dim(4)))
    fail("rlx.philox_4x32: the counter is {} (allowed: u32[..., 4])", counter.type().to_string());
  const Block words =
      philox_block({element(counter, 0), element(counter, 1), element(counter, 2), element(counter, 3)}, element(key, 0), element(key, 1));
  Values parts;
  for (Value word : words) {
    Dims shape = word.shape();
    shape.push_back(1);
    parts.push_back(reshape(word, shape));
  }
  return concat(parts, counter.rank() - 1);
}

/// A key for the `index`-th of many independent streams; the same index gives the same key. `index` is an integer of rank 0.
Value random_key(Operand key, Operand index) {
  if (!is_integer(index.dtype()) || index.rank() != 0)
    fail("rlx.random_key: the index is {} (allowed: an integer of rank 0)", index.type().to_string());
  // The last counter word is 1 here and 0 in random_bits, so that derived keys share no block with the numbers of their parent.
  Value word = reshape(cast(index, u32), {1}), zero = scalar(word, 0, u32);
  Value counter = concat({word, reshape(zero, {1}), reshape(zero, {1}), reshape(scalar(word, 1, u32), {1})}, 0);
  return slice_axis(philox_4x32(counter, key), 0, 0, 2);
}

/// Uniform 32-bit words u32 of the given shape from a key u32[2].
Value random_bits(Operand key, Dims shape) { return random_bits_op({shape}, key); }

/// Uniform in low..high without high: every multiple of 2^-24 (f32; 2^-53 for f64, 2^-11 f16, 2^-8 bf16) of the range is as likely.
Value random_uniform(Operand key, Dims shape, DType dtype /*= f32*/, double low /*= 0*/, double high /*= 1*/) {
  Value unit = uniform_steps(key, shape, dtype) * std::ldexp(1.0, -precision(dtype));
  return low == 0 && high == 1 ? unit : unit * (high - low) + low;
}

/// Uniform integers in low..high - 1 as `dtype`. Throws Error unless low < high <= low + 2^32.
Value random_integers(Operand key, Dims shape, std::int64_t low, std::int64_t high, DType dtype /*= i32*/) {
  const double range = static_cast<double>(high) - static_cast<double>(low);
  if (!is_integer(dtype) || low >= high || range > std::ldexp(1.0, 32))
    fail("rlx.random_integers: {}..{} as {} (allowed: low < high <= low + 2^32, integers)", low, high, name(dtype));
  Value wide = cast(random_bits(key, shape), u64) * range;
  Value offset = cast(shr(wide, like(wide, 32)), i64);
  return cast(offset + static_cast<double>(low), dtype);
}

/// Normal numbers of the given shape with the given mean and standard deviation (Box-Muller). Throws Error when dtype is no float.
Value random_normal(Operand key, Dims shape, DType dtype /*= f32*/, double mean /*= 0*/, double deviation /*= 1*/) {
  Value pair = uniform_above_zero(key, with_leading(2, shape), working_type("random_normal", dtype));
  Value radius = sqrt(log(row(pair, 0)) * -2.0), angle = row(pair, 1) * (2 * std::numbers::pi);
  return cast(radius * cos(angle) * deviation + mean, dtype);
}

/// Standard Gumbel numbers of the given shape, -log(-log(u)). Throws Error when dtype is no float.
Value random_gumbel(Operand key, Dims shape, DType dtype /*= f32*/) {
  const DType wide = working_type("random_gumbel", dtype);
  // The centres of the steps are neither 0 nor 1, whose logarithms end in infinity; the last centre would round to 1.
  Value steps = uniform_steps(key, shape, wide);
  Value u = min((steps + 0.5) * std::ldexp(1.0, -precision(wide)), like(steps, 1 - std::ldexp(1.0, -precision(wide))));
  return cast(-log(-log(u)), dtype);
}

/// Bool of the given shape, true with the given probability.
Value random_bernoulli(Operand key, Dims shape, double probability) {
  Value u = random_uniform(key, shape);
  return lt(u, like(u, probability));
}

/// An index (i32) along `axis` for each of the other positions, drawn with probability softmax(logits); `axis` disappears.
Value categorical(Operand key, Operand logits, std::int64_t axis /*= -1*/) {
  check_float("categorical", logits);
  return cast(argmax(widen(logits) + random_gumbel(key, logits.shape(), accumulation_type(logits.dtype())), axis), i32);
}

}  // namespace rlx
