#include "passes/narrow_types.h"

#include <cmath>
#include <limits>

#include "base/small_float.h"
#include "ops/wide.h"

namespace rlx {
namespace {

const SmallFloat& format_of(DType t) { return t == f8e4m3 ? f8e4m3_format : f8e5m2_format; }

std::int64_t infinity_code(const SmallFloat& f) { return std::int64_t{f.exponent_mask()} << f.mantissa_bits; }
/// What numbers too large become: the code above that of the largest number.
std::int64_t overflow_code(const SmallFloat& f) { return f.finite_only ? 0x7f : infinity_code(f); }
std::int64_t nan_code(const SmallFloat& f) { return f.finite_only ? 0x7f : infinity_code(f) | (1 << (f.mantissa_bits - 1)); }

Value masked(Value x, std::int64_t mask) { return logical_and(x, like(x, static_cast<double>(mask))); }
Value left(Value x, int places) { return shl(x, like(x, places)); }
Value right(Value x, int places) { return shr(x, like(x, places)); }

Value decode_float(Value code, const SmallFloat& f) {
  Value bits = cast(code, i32), size = masked(bits, 0x7f);
  const int raise = 23 - f.mantissa_bits;
  Value widened = left(size, raise);
  Value normal = bitcast(widened + static_cast<double>((127 - f.bias()) << 23), f32);
  Value subnormal = cast(size, f32) * std::exp2(1 - f.bias() - f.mantissa_bits);
  Value number = select(lt(size, like(size, 1 << f.mantissa_bits)), subnormal, normal);
  Value top =
      f.finite_only ? like(number, std::numeric_limits<double>::quiet_NaN()) : bitcast(logical_or(widened, like(widened, 0x7f800000)), f32);
  number = select(ge(size, like(size, static_cast<double>(overflow_code(f)))), top, number);
  return bitcast(logical_or(bitcast(number, i32), left(masked(bits, 0x80), 24)), f32);
}

/// Rounds on the bits of the wider float, where numbers in order have bits in order.
Value encode_float(Value x, const SmallFloat& f) {
  const bool wide = x.dtype() == f64;
  const DType word = wide ? i64 : i32;
  const int mantissa = wide ? 52 : 23, bias = wide ? 1023 : 127, dropped = mantissa - f.mantissa_bits;
  Value size = abs(x), bits = bitcast(size, word), odd = masked(right(bits, dropped), 1);
  Value normal = right(bits + odd + (std::exp2(dropped - 1) - 1), dropped) - static_cast<double>((bias - f.bias()) << f.mantissa_bits);
  // A sum in which one unit in the last place is that of the subnormal numbers.
  Value anchor = like(size, std::exp2(1 - f.bias() - f.mantissa_bits + mantissa));
  Value subnormal = bitcast(size + anchor, word) - bitcast(anchor, word);
  Value code = select(lt(size, like(size, std::exp2(1 - f.bias()))), subnormal, normal);
  code = min(code, like(code, static_cast<double>(overflow_code(f))));
  code = select(ne(x, x), like(code, static_cast<double>(nan_code(f))), code);
  Value sign = bitcast(x, word), negative = lt(sign, like(sign, 0));
  return cast(logical_or(code, select(negative, like(code, 0x80), like(code, 0))), u8);
}

}  // namespace

bool is_narrow(DType t) { return is_packed(t) || (is_float(t) && info(t).bits == 8); }

DType part_type(DType t) {
  if (is_complex(t)) return t == c128 ? f64 : f32;
  if (is_float(t)) return f32;
  return t == i4 ? i8 : u8;
}

Value decode(Value code, DType t) {
  if (is_float(t)) return decode_float(code, format_of(t));
  return t == u4 ? code : right(bitcast(left(code, 4), i8), 4);
}

Value encode(Value x, DType t) {
  if (is_float(t)) return encode_float(x, format_of(t));
  return t == u4 ? x : masked(bitcast(x, u8), 15);
}

Value wrapped(Value part, DType t) {
  if (is_float(t)) return part;
  return t == u4 ? masked(part, 15) : right(left(part, 4), 4);
}

Value bounded(Value part, DType t) {
  if (t == f8e5m2) return part;
  if (t == u4) return min(part, like(part, 15));
  const double least = t == i4 ? -8 : -448, most = t == i4 ? 7 : 448;
  return min(max(part, like(part, least)), like(part, most));
}

Value saturated(Value part, DType t) { return is_float(t) ? decode(encode(part, t), t) : bounded(part, t); }

Value cast_to_part(Value x, DType t) {
  if (!is_float(t)) return is_float(x.dtype()) ? saturated(cast(x, part_type(t)), t) : wrapped(cast(x, part_type(t)), t);
  return decode(encode(x.dtype() == f64 ? x : cast(x, f32), t), t);  // integers that f32 rounds are too large for 8-bit floats
}

}  // namespace rlx
