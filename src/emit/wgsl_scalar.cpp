#include "emit/wgsl_scalar.h"

#include <array>
#include <bit>
#include <cmath>

namespace rlx {
namespace {

/// How an op is written for each class of types, see ScalarText. `wide`: of two words.
struct WgslRow {
  ScalarOp op;
  std::string_view floating, signed_int, unsigned_int, wide, boolean;
};
using enum ScalarOp;
constexpr std::array<WgslRow, 28> rows{{
    {neg, "-{x}", "-{x}", "0u - {x}", "rlx_sub64(vec2<u32>(), {x})", ""},
    {abs, "abs({x})", "abs({x})", "{x}", "rlx_abs_{t}({x})", ""},
    {sign, "select(select({x}, -1.0, {x} < 0.0), 1.0, {x} > 0.0)", "select(select(0, -1, {x} < 0), 1, {x} > 0)",
     "select(0u, 1u, {x} != 0u)", "rlx_sign_{t}({x})", ""},
    {floor, "floor({x})", "", "", "", ""},
    {round, "round({x})", "", "", "", ""},
    {sqrt, "rlx_kept(sqrt({x}))", "", "", "", ""},
    {rsqrt, "rlx_kept(1.0 / sqrt({x}))", "", "", "", ""},
    {logical_not, "", "~{x}", "~{x}", "~{x}", "!{x}"},
    {add, "rlx_kept({x} + {z})", "{x} + {z}", "{x} + {z}", "rlx_add64({x}, {z})", ""},
    {sub, "rlx_kept({x} - rlx_apart({z}))", "{x} - {z}", "{x} - {z}", "rlx_sub64({x}, {z})", ""},
    {mul, "rlx_kept({x} * {z})", "{x} * {z}", "{x} * {z}", "rlx_mul64({x}, {z})", ""},
    {div, "rlx_kept({x} / {z})", "rlx_div_i32({x}, {z})", "rlx_div_u32({x}, {z})", "rlx_div_{t}({x}, {z})", ""},
    {rem, "rlx_rem_f32({x}, {z})", "rlx_rem_i32({x}, {z})", "rlx_rem_u32({x}, {z})", "rlx_rem_{t}({x}, {z})", ""},
    {max, "rlx_max_f32({x}, {z})", "max({x}, {z})", "max({x}, {z})", "select({x}, {z}, rlx_lt_{t}({x}, {z}))", "{x} || {z}"},
    {min, "rlx_min_f32({x}, {z})", "min({x}, {z})", "min({x}, {z})", "select({x}, {z}, rlx_lt_{t}({z}, {x}))", "{x} && {z}"},
    {logical_and, "", "{x} & {z}", "{x} & {z}", "{x} & {z}", "{x} && {z}"},
    {logical_or, "", "{x} | {z}", "{x} | {z}", "{x} | {z}", "{x} || {z}"},
    {logical_xor, "", "{x} ^ {z}", "{x} ^ {z}", "{x} ^ {z}", "{x} != {z}"},
    {shl, "", "select(0, {x} << (u32({z}) & 31u), u32({z}) < {bits}u)", "select(0u, {x} << ({z} & 31u), {z} < {bits}u)",
     "rlx_shl64({x}, rlx_count64({z}))", ""},
    {shr, "", "{x} >> min(u32({z}), {bits}u - 1u)", "select(0u, {x} >> ({z} & 31u), {z} < {bits}u)", "rlx_shr_{t}({x}, rlx_count64({z}))",
     ""},
    {eq, "{x} == {z}", "{x} == {z}", "{x} == {z}", "all({x} == {z})", "{x} == {z}"},
    {ne, "!({x} == {z})", "{x} != {z}", "{x} != {z}", "any({x} != {z})", "{x} != {z}"},
    {lt, "{x} < {z}", "{x} < {z}", "{x} < {z}", "rlx_lt_{t}({x}, {z})", "!{x} && {z}"},
    {le, "{x} <= {z}", "{x} <= {z}", "{x} <= {z}", "!rlx_lt_{t}({z}, {x})", "!{x} || {z}"},
    {gt, "{x} > {z}", "{x} > {z}", "{x} > {z}", "rlx_lt_{t}({z}, {x})", "{x} && !{z}"},
    {ge, "{x} >= {z}", "{x} >= {z}", "{x} >= {z}", "!rlx_lt_{t}({x}, {z})", "{x} || !{z}"},
    {select, "select({w}, {z}, {x})", "select({w}, {z}, {x})", "select({w}, {z}, {x})", "select({w}, {z}, {x})", "select({w}, {z}, {x})"},
}};

bool is_wide(DType t) { return is_integer(t) && info(t).bits == 64; }
bool is_narrow_int(DType t) { return is_integer(t) && info(t).bits < 32; }

/// Zeros and what is no normal number are made of bits that compilers do not know: they compute with neither as IEEE 754 says.
std::string float_literal(double value) {
  const auto x = static_cast<float>(value);
  if (!std::isnormal(x)) return fmt::format("bitcast<f32>(zero ^ {}u)", std::bit_cast<std::uint32_t>(x));
  std::string digits = fmt::format("{}", x);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits + "f";
}

std::string int_literal(std::int64_t value, DType t) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (is_wide(t)) return fmt::format("vec2<u32>({}u, {}u)", static_cast<std::uint32_t>(bits), bits >> 32);
  if (is_signed_int(t)) return fmt::format("i32({})", value);
  return fmt::format("{}u", bits & (~0ull >> (64 - info(t).bits)));
}

}  // namespace

std::string WgslScalars::type_name(DType t) const {
  if (t == f64) fail_internal("emit: f64 in WGSL");
  if (is_bool(t)) return "bool";
  if (is_float(t)) return "f32";
  return is_wide(t) ? "vec2<u32>" : is_signed_int(t) ? "i32" : "u32";
}

std::string WgslScalars::literal(const Expr& e) const {
  if (is_float(e.dtype)) return float_literal(e.number);
  if (is_bool(e.dtype)) return e.integer ? "true" : "false";
  return int_literal(e.integer, e.dtype);
}

std::string WgslScalars::prelude() const { return wgsl_prelude(used_); }

std::string WgslScalars::fma(const std::string& a, const std::string& b, const std::string& c, DType /*t*/) {
  return call("rlx_fma", fmt::format("{}, {}, {}", a, b, c));
}

std::string WgslScalars::is_nan(const std::string& x) { return call("rlx_is_nan", x); }

std::string WgslScalars::near(const std::string& x, std::int64_t middle) { return call("rlx_near", x + ", " + int_literal(middle, i64)); }

/// Integers below 32 bits lie in registers of 32.
std::string WgslScalars::wrapped(const std::string& x, DType t) {
  if (!is_narrow_int(t)) return x;
  const int bits = info(t).bits;
  if (is_signed_int(t)) return fmt::format("(({0}) << {1}u) >> {1}u", x, 32 - bits);
  return fmt::format("({}) & {}u", x, (1u << bits) - 1);
}

std::string WgslScalars::word(const std::string& value, DType t) {
  if (is_bool(t)) return "select(0u, 1u, " + value + ")";
  if (is_float(t)) return t == f32 ? "bitcast<u32>(" + value + ")" : call(fmt::format("rlx_f32_to_{}", rlx::name(t)), value);
  if (is_unsigned_int(t)) return value;
  return is_narrow_int(t) ? fmt::format("(u32({}) & {}u)", value, (1u << info(t).bits) - 1) : "u32(" + value + ")";
}

std::string WgslScalars::from_word(const std::string& word, DType t) {
  if (is_bool(t)) return fmt::format("({} & 255u) != 0u", word);
  if (is_float(t)) return t == f32 ? "bitcast<f32>(" + word + ")" : call(fmt::format("rlx_{}_to_f32", rlx::name(t)), word);
  return wrapped(is_signed_int(t) ? "i32(" + word + ")" : word, t);
}

std::string WgslScalars::cast(const std::string& x, DType from, DType to) {
  const bool wide = is_wide(from);
  if (is_bool(from)) {
    if (is_bool(to)) return x;
    return fmt::format("select({}, {}, {})", literal(neutral_of(ReduceKind::sum, to)), literal(neutral_of(ReduceKind::prod, to)), x);
  }
  if (is_bool(to)) return is_float(from) ? fmt::format("!({} == 0.0)", x) : wide ? fmt::format("any({} != vec2<u32>())", x) : x + " != 0";
  if (is_float(to)) {
    const std::string f = is_float(from) ? x : wide ? call(fmt::format("rlx_{}_to_f32", rlx::name(from)), x) : "f32(" + x + ")";
    return to == f32 || to == from ? f : from_word(word(f, to), to);
  }
  if (is_float(from)) {
    const DType target = is_wide(to) ? to : is_signed_int(to) ? i32 : u32;
    std::string whole = call(fmt::format("rlx_f32_to_{}", rlx::name(target)), x);
    if (!is_narrow_int(to)) return whole;
    return fmt::format("clamp({}, {}, {})", whole, literal(neutral_of(ReduceKind::max, to)), literal(neutral_of(ReduceKind::min, to)));
  }
  if (is_wide(to)) return wide ? x : call(is_signed_int(from) ? "rlx_i32_to_i64" : "rlx_u32_to_u64", x);
  return wrapped(type_name(to) + "(" + x + (wide ? ".x)" : ")"), to);
}

std::string WgslScalars::bitcast(const std::string& x, DType from, DType to) {
  return from == to || is_wide(from) ? x : from_word(word(x, from), to);
}

std::string WgslScalars::emit(ScalarOp op, const std::vector<Operand>& args, DType result) {
  if (op == ScalarOp::ne && is_float(args[0].dtype) && args[0].value == args[1].value) return is_nan(args[0].value);
  return ScalarText::emit(op, args, result);
}

std::string_view WgslScalars::pattern(ScalarOp op, DType t) const {
  for (const WgslRow& row : rows)
    if (row.op == op)
      return is_float(t)        ? row.floating
             : is_bool(t)       ? row.boolean
             : is_wide(t)       ? row.wide
             : is_signed_int(t) ? row.signed_int
                                : row.unsigned_int;
  return "";
}

}  // namespace rlx
