// Ops on the bits of elements: counts, reductions by bitwise operations, logical shifts, the next number, rounding to fewer bits, and bytes
// read as another type.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/scalar/reinterpret.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

void check_integer(std::string_view op, Value x) {
  if (!is_integer(x.dtype())) fail("rlx.{}: {} is not allowed (allowed: integers)", op, x.type().to_string());
}

int width(DType t) { return is_bool(t) ? 1 : info(t).bits; }

// The bits of x as u32 or u64; above them zeros.
Value bits_of(Value x) {
  if (width(x.dtype()) > 32) return cast(x, u64);
  Value bits = cast(x, u32);
  return width(x.dtype()) == 32 ? bits : logical_and(bits, like(bits, std::exp2(width(x.dtype())) - 1));
}

Value masked(Value x, double mask) { return logical_and(x, like(x, mask)); }
Value shifted(Value x, double places) { return shr(x, like(x, places)); }

// The set bits of u32, counted in parallel: in pairs, in fours, in bytes, and the bytes added by a product.
Value count_of_word(Value x) {
  x = x - masked(shifted(x, 1), 0x55555555);
  x = masked(x, 0x33333333) + masked(shifted(x, 2), 0x33333333);
  return shifted(masked(x + shifted(x, 4), 0x0f0f0f0f) * 0x01010101, 24);
}
Value count_of(Value bits) {
  if (bits.dtype() == u32) return count_of_word(bits);
  return count_of_word(cast(bits, u32)) + count_of_word(cast(shifted(bits, 32), u32));
}

std::vector<Sample> integer_samples() {
  std::vector<Sample> all;
  for (DType t : {i8, i16, i32, i64, i4}) all.push_back({{{{t, {3, 7}}, t == i4 ? -8.0 : -100.0, t == i4 ? 7.0 : 100.0}}, {}, 0, false});
  for (DType t : {u8, u16, u32, u64, u4}) all.push_back({{{{t, {3, 7}}, 0, t == u4 ? 15.0 : 200.0}}, {}, 0, false});
  all.push_back({{{{i64, {9}}, -9e15, 9e15}}, {}, 0, false});
  return all;
}

struct PopulationCount {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "population_count";
  static constexpr std::string_view formula = "how many bits of x are set";
  static auto fields() { return Fields<>{}; }
  static Value body(const PopulationCount&, Value x) { return check_integer(name, x), cast(count_of(bits_of(x)), x.dtype()); }
  static std::vector<Sample> samples() { return integer_samples(); }
};
const Op<PopulationCount> population_count_op;

struct LeadingZeros {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "clz";
  static constexpr std::string_view formula = "how many bits of x are 0 above the highest that is set; the width of the type for 0";
  static auto fields() { return Fields<>{}; }
  static Value body(const LeadingZeros&, Value x) {
    check_integer(name, x);
    Value bits = bits_of(x);
    for (int places = 1; places < width(x.dtype()); places *= 2) bits = logical_or(bits, shifted(bits, places));
    return cast(width(x.dtype()) - count_of(bits), x.dtype());
  }
  static std::vector<Sample> samples() { return integer_samples(); }
};
const Op<LeadingZeros> clz_op;

DType unsigned_type(int bits) {
  switch (bits) {
    case 4: return u4;
    case 8: return u8;
    case 16: return u16;
    case 32: return u32;
    default: return u64;
  }
}
DType signed_type(int bits) {
  switch (bits) {
    case 8: return i8;
    case 16: return i16;
    case 32: return i32;
    default: return i64;
  }
}

struct ShrLogical {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "shr_logical";
  static constexpr std::string_view formula = "the bits of x moved z places down, zeros above them; 0 when z < 0 or z >= width";
  static auto fields() { return Fields<>{}; }
  static Value body(const ShrLogical&, Value x, Value z) {
    check_integer(name, x);
    const DType bits = unsigned_type(width(x.dtype()));  // where what is below 0 is too large
    return cast(shr(cast(x, bits), cast(z, bits)), x.dtype());
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {i8, i16, i32, i64, i4, u8, u16, u32, u64, u4}) {
      const double most = t == i4 ? 7 : t == u4 ? 15 : 100, least = is_unsigned_int(t) ? 0 : -most - 1;
      all.push_back({{{{t, {3, 7}}, least, most}, {{t, {3, 7}}, is_unsigned_int(t) ? 0.0 : -1.0, 6}}, {}, 0, false});
    }
    return all;
  }
};
const Op<ShrLogical> shr_logical_op;

struct NextAfter {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "nextafter";
  static constexpr std::string_view formula = "the number of the type beside x towards z; z where both are equal";
  static constexpr std::string_view not_differentiable = "it steps by one unit in the last place";
  static auto fields() { return Fields<>{}; }
  /// In integers, as kernels take subnormal numbers for 0: the bits without the sign count the numbers from 0 on.
  static Value body(const NextAfter&, Value x, Value z) {
    check_float(name, x);
    const DType dtype = x.dtype(), word = signed_type(width(dtype));
    const Value from = bitcast(x, word), to = bitcast(z, word);
    const Value zero = like(from, 0), lowest = shl(like(from, 1), like(from, width(dtype) - 1)), all = logical_not(lowest);
    const auto size = [&](Value bits) { return logical_and(bits, all); };
    const auto place = [&](Value bits) { return select(lt(bits, zero), -size(bits), size(bits)); };
    const Value at = place(from), end = place(to), step = select(lt(at, end), at + 1, at - 1);
    const Value below = lt(step, zero), negative = logical_or(below, logical_and(eq(step, zero), lt(from, zero)));
    const Value next = logical_or(select(below, -step, step), select(negative, lowest, zero));
    // f8e4m3 has no infinity: its largest number is the last but one of its bits.
    const Value largest = dtype == f8e4m3 ? all - 1 : bitcast(like(x, infinity), word);
    const Value is_nan = logical_or(gt(size(from), largest), gt(size(to), largest));
    return bitcast(select(is_nan, all, select(eq(at, end), to, next)), dtype);
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, -2, 2, false, 2); }
};
const Op<NextAfter> nextafter_op;

enum class BitReduction : std::uint8_t { bit_or, bit_and, bit_xor };
constexpr auto enum_words(BitReduction) { return std::array<std::string_view, 3>{"or", "and", "xor"}; }

struct ReduceBits {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "reduce_bits";
  static constexpr std::string_view formula = "bitwise or, and, or exclusive or over `axes`, which disappear; of nothing: no, all, no bits";
  BitReduction op = BitReduction::bit_or;
  Axes axes;
  static auto fields() { return Fields<&ReduceBits::op, &ReduceBits::axes>{}; }
  /// Each bit apart, along a new last axis: how often it is set decides.
  static Value body(const ReduceBits& r, Value x) {
    if (!is_integer(x.dtype()) && !is_bool(x.dtype()))
      fail("rlx.reduce_bits: {} is not allowed (allowed: integers, bool)", x.type().to_string());
    Axes axes = r.axes;
    for (auto& axis : axes.values) axis = normalize_axis("reduce_bits", axis, x.type());
    const bool all = r.op == BitReduction::bit_and;  // x and z = not (not x or not z)
    Value bits = bits_of(all ? logical_not(x) : x), place = iota(bits, {Dim(width(x.dtype()))}, bits.dtype());
    Value count = sum(masked(shr(expand_dims(bits, {-1}), place), 1), axes);
    Value bit = r.op == BitReduction::bit_xor ? masked(count, 1) : min(count, like(count, 1));
    Value result = cast(sum(shl(bit, place), {-1}), x.dtype());
    return all ? logical_not(result) : result;
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (BitReduction op : {BitReduction::bit_or, BitReduction::bit_and, BitReduction::bit_xor}) {
      for (DType t : {i8, i32, i64, u8, u32, u64})
        all.push_back({{{{t, {2, 3, 4}}, is_unsigned_int(t) ? 0.0 : -100.0, 100}}, attrs_of(ReduceBits{op, {0, 2}}), 0, false});
      all.push_back({{{{boolean, {3, 2}}, 0, 1}}, attrs_of(ReduceBits{op, {1}}), 0, false});
    }
    return all;
  }
};
const Op<ReduceBits> reduce_bits_op;

Value reduce_bits(std::string_view builder, BitReduction op, Value x, Axes axes, bool keep_dims) {
  for (auto& axis : axes.values) axis = normalize_axis(builder, axis, x.type());
  std::sort(axes.values.begin(), axes.values.end());
  Value result = reduce_bits_op({op, axes}, x);
  return keep_dims ? expand_dims(result, axes) : result;
}

// Layout of a binary floating-point type.
struct FloatBits {
  DType word;
  int exponent, mantissa;
};
FloatBits float_bits(DType t) {
  switch (t) {
    case DType::f64: return {u64, 11, 52};
    case DType::f32: return {u32, 8, 23};
    case DType::bf16: return {u16, 8, 7};
    case DType::f16: return {u16, 5, 10};
    default: fail("rlx.reduce_precision: {} is not allowed (allowed: f64, f32, bf16, f16)", rlx::name(t));
  }
}

struct ReducePrecision {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "reduce_precision";
  static constexpr std::string_view formula =
      "x rounded (half to even) to `mantissa_bits`, infinite or 0 where `exponent_bits` do not hold it; derivative 1";
  std::int64_t exponent_bits = 8, mantissa_bits = 7;
  static auto fields() { return Fields<&ReducePrecision::exponent_bits, &ReducePrecision::mantissa_bits>{}; }

  static Value rounded(Value x, const FloatBits& layout, std::int64_t mantissa_bits) {
    if (mantissa_bits >= layout.mantissa) return x;
    const auto dropped = static_cast<int>(layout.mantissa - mantissa_bits);
    Value bits = bitcast(x, layout.word), last = masked(shifted(bits, dropped), 1);
    Value up = shifted(bits + last + (std::exp2(dropped - 1) - 1), dropped);
    return bitcast(shl(up, like(up, dropped)), x.dtype());
  }
  /// Numbers beyond the largest exponent become infinite; those below the smallest normal number become 0, as subnormals are flushed.
  static Value limited(Value x, const FloatBits& layout, std::int64_t exponent_bits) {
    if (exponent_bits >= layout.exponent) return x;
    const double largest = std::exp2(exponent_bits - 1) - 1;
    Value size = abs(x), over = ge(size, like(x, std::exp2(largest + 1))), under = lt(size, like(x, std::exp2(1 - largest)));
    return select(over, sign(x) * std::numeric_limits<double>::infinity(), select(under, x * 0, x));
  }
  static Value body(const ReducePrecision& op, Value x) {
    const FloatBits layout = float_bits(x.dtype());
    if (op.exponent_bits < 1 || op.mantissa_bits < 0)
      fail("rlx.reduce_precision: {} exponent bits and {} mantissa bits (allowed: at least 1 and 0)", op.exponent_bits, op.mantissa_bits);
    return select(ne(x, x), x, limited(rounded(x, layout, op.mantissa_bits), layout, op.exponent_bits));
  }
  static Values jvp(const ReducePrecision&, In, In, In dx) { return {dx[0]}; }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, f16, bf16})
      for (auto [exponent, mantissa] : {std::pair{8, 7}, std::pair{5, 2}, std::pair{3, 0}, std::pair{11, 52}})
        all.push_back({{{{t, {3, 5}}, -20, 20}}, attrs_of(ReducePrecision{exponent, mantissa}), 0, false});
    return all;
  }
};
const Op<ReducePrecision> reduce_precision_op;

struct Reinterpret {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "reinterpret";
  static constexpr std::string_view formula = "the bytes of x as elements of type `to` in `shape`; as many bytes";
  static constexpr std::string_view not_differentiable = "it reinterprets bytes";
  DType to = u8;
  Sizes shape;
  static auto fields() { return Fields<&Reinterpret::to, &Reinterpret::shape>{}; }
  static Dim bytes(const Type& t) {
    if (!is_packed(t.dtype)) return t.size() * (info(t.dtype).bits / 8);
    if (t.is_static()) return bytes_for(t.dtype, t.size().value());
    const auto half = Dim::exact_div(t.size(), 2);
    if (!half) fail("rlx.reinterpret: {} has no known number of bytes: its size may be odd", t.to_string());
    return *half;
  }
  static Type infer(const Reinterpret& op, const Type& x) {
    Type result{op.to, op.shape.values};
    if (!(bytes(result) == bytes(x)))
      fail("rlx.reinterpret: {} has {} bytes, {} has {}", x.to_string(), bytes(x).to_string(), result.to_string(),
           bytes(result).to_string());
    return result;
  }
  static void evaluate(const Reinterpret&, std::span<const Array> x, std::span<Array> y) {
    std::copy(x[0].bytes().begin(), x[0].bytes().end(), y[0].mutable_bytes().begin());
  }
  static std::vector<Sample> samples() {
    return {{{{{c64, {3, 2}}}}, attrs_of(Reinterpret{f32, Dims{3, 2, 2}}), 0, false},
            {{{{f64, {4, 2}}}}, attrs_of(Reinterpret{c128, Dims{4}}), 0, false},
            {{{{u4, {3, 4}}, 0, 15}}, attrs_of(Reinterpret{u8, Dims{6}}), 0, false},
            {{{{i32, {5}}, -1000, 1000}}, attrs_of(Reinterpret{i8, Dims{20}}), 0, false}};
  }
};
const Op<Reinterpret> reinterpret_op;

}  // namespace

// Declared in ops/scalar/reinterpret.h: no builder of the public interface.
Value reinterpret(Value x, DType to, Dims shape) { return reinterpret_op({to, Sizes{std::move(shape)}}, x); }

bool is_reinterpretation(const Node& node) { return node.op == &Op<Reinterpret>::def(); }

/// How many bits of each integer are set, as the same type. Throws Error when x is no integer.
Value population_count(Operand x) { return population_count_op({}, x); }

/// The bits of x moved z places down, with zeros above them, also for signed types; 0 when z < 0 or z >= the width. x and z broadcast.
/// Throws Error when they are no integers.
Value shr_logical(Operand x, Operand z) {
  std::tie(x, z) = match("shr_logical", x, z);
  return shr_logical_op({}, x, z);
}

/// The next number of the type after x towards z, exactly, subnormal numbers too; z where both are equal, NaN beside NaN. x and z
/// broadcast. Not differentiable. Throws Error when they are no floats.
Value nextafter(Operand x, Operand z) {
  std::tie(x, z) = match("nextafter", x, z);
  return nextafter_op({}, x, z);
}

/// How many bits are 0 above the highest one that is set; the width of the type for 0. Throws Error when x is no integer.
Value clz(Operand x) { return clz_op({}, x); }

/// Bitwise or of integers or bool over `axes`; with keep_dims they stay with size 1. Of no elements: 0.
Value reduce_or(Operand x, Axes axes, bool keep_dims /*= false*/) {
  return reduce_bits("reduce_or", BitReduction::bit_or, x, axes, keep_dims);
}
/// Bitwise and over `axes`. Of no elements: all bits set.
Value reduce_and(Operand x, Axes axes, bool keep_dims /*= false*/) {
  return reduce_bits("reduce_and", BitReduction::bit_and, x, axes, keep_dims);
}
/// Bitwise exclusive or over `axes`: the parity of each bit. Of no elements: 0.
Value reduce_xor(Operand x, Axes axes, bool keep_dims /*= false*/) {
  return reduce_bits("reduce_xor", BitReduction::bit_xor, x, axes, keep_dims);
}

/// x in its own dtype with the values of a float type of that many bits: rounded half to even, numbers too large infinite, those below the
/// smallest normal number 0 where the exponent is narrower than x's. NaN stays. Bits beyond those of the dtype change nothing. The
/// derivative passes unchanged. Throws Error for dtypes other than f64, f32, bf16, f16, exponent_bits < 1 or mantissa_bits < 0.
Value reduce_precision(Operand x, std::int64_t exponent_bits, std::int64_t mantissa_bits) {
  return reduce_precision_op({exponent_bits, mantissa_bits}, x);
}

}  // namespace rlx
