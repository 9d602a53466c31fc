#include "emit/c_scalar.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "emit/c_prelude.h"

namespace rlx {
namespace {

/// How an op is written for each class of types, see ScalarText. T converts to the type in registers, U to the unsigned type in which
/// arithmetic wraps, and f is the suffix of the functions of that type.
struct CRow {
  ScalarOp op;
  std::string_view floating, signed_int, unsigned_int, boolean;
};
using enum ScalarOp;
constexpr std::array<CRow, 38> rows{{
    {neg, "-{x}", "{T}(0 - {U}{x})", "{T}(0 - {U}{x})", ""},
    {abs, "fabs{f}({x})", "{T}({x} < 0 ? 0 - {U}{x} : {U}{x})", "{x}", ""},
    {sign, "({x} > 0 ? 1 : {x} < 0 ? -1 : {x})", "{T}(({x} > 0) - ({x} < 0))", "{T}({x} != 0)", ""},
    {floor, "floor{f}({x})", "", "", ""},
    {round, "{nearest}{f}({x})", "", "", ""},
    {exp, "exp{f}({x})", "", "", ""},
    {expm1, "expm1{f}({x})", "", "", ""},
    {log, "log{f}({x})", "", "", ""},
    {log1p, "log1p{f}({x})", "", "", ""},
    {sqrt, "sqrt{f}({x})", "", "", ""},
    {rsqrt, "1 / sqrt{f}({x})", "", "", ""},
    {sin, "sin{f}({x})", "", "", ""},
    {cos, "cos{f}({x})", "", "", ""},
    {tanh, "tanh{f}({x})", "", "", ""},
    {atan, "atan{f}({x})", "", "", ""},
    {erf, "erf{f}({x})", "", "", ""},
    {logical_not, "", "{T}~{x}", "{T}~{x}", "!{x}"},
    {add, "{x} + {z}", "{T}({U}{x} + {U}{z})", "{T}({U}{x} + {U}{z})", ""},
    {sub, "{x} - {z}", "{T}({U}{x} - {U}{z})", "{T}({U}{x} - {U}{z})", ""},
    {mul, "{x} * {z}", "{T}({U}{x} * {U}{z})", "{T}({U}{x} * {U}{z})", ""},
    {div, "{x} / {z}", "rlx_div_{t}({x}, {z})", "rlx_div_{t}({x}, {z})", ""},
    {rem, "fmod{f}({x}, {z})", "rlx_rem_{t}({x}, {z})", "rlx_rem_{t}({x}, {z})", ""},
    {pow, "pow{f}({x}, {z})", "", "", ""},
    {max, "rlx_max_{t}({x}, {z})", "({x} < {z} ? {z} : {x})", "({x} < {z} ? {z} : {x})", "{x} || {z}"},
    {min, "rlx_min_{t}({x}, {z})", "({z} < {x} ? {z} : {x})", "({z} < {x} ? {z} : {x})", "{x} && {z}"},
    {logical_and, "", "{T}({x} & {z})", "{T}({x} & {z})", "{x} && {z}"},
    {logical_or, "", "{T}({x} | {z})", "{T}({x} | {z})", "{x} || {z}"},
    {logical_xor, "", "{T}({x} ^ {z})", "{T}({x} ^ {z})", "{x} != {z}"},
    {shl, "", "({U}{z} < {bits} ? {T}({U}{x} << {z}) : 0)", "({U}{z} < {bits} ? {T}({U}{x} << {z}) : 0)", ""},
    {shr, "", "{T}({x} >> ({U}{z} < {bits} ? {z} : {bits} - 1))", "({z} < {bits} ? {T}({x} >> {z}) : 0)", ""},
    {eq, "{x} == {z}", "{x} == {z}", "{x} == {z}", "{x} == {z}"},
    {ne, "{x} != {z}", "{x} != {z}", "{x} != {z}", "{x} != {z}"},
    {lt, "{x} < {z}", "{x} < {z}", "{x} < {z}", "{x} < {z}"},
    {le, "{x} <= {z}", "{x} <= {z}", "{x} <= {z}", "{x} <= {z}"},
    {gt, "{x} > {z}", "{x} > {z}", "{x} > {z}", "{x} > {z}"},
    {ge, "{x} >= {z}", "{x} >= {z}", "{x} >= {z}", "{x} >= {z}"},
    {select, "{x} ? {z} : {w}", "{x} ? {z} : {w}", "{x} ? {z} : {w}", "{x} ? {z} : {w}"},
}};

/// Infinities and NaN have names; a negative number is in brackets, so that it can follow any operator.
std::string float_literal(double value, DType t) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "(-INFINITY)" : "INFINITY";
  std::string digits = t == f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  if (t != f64) digits += "f";
  return std::signbit(value) ? "(" + digits + ")" : digits;
}

std::string int_literal(const CDialect& dialect, std::int64_t value, DType t) {
  const int bits = info(t).bits;
  const std::string_view suffix = bits == 64 ? dialect.long_suffix : "";
  if (is_unsigned_int(t)) return fmt::format("{}u{}", static_cast<std::uint64_t>(value) & (~0ull >> (64 - bits)), suffix);
  // The lowest integer has no literal of its own.
  if (value == std::numeric_limits<std::int64_t>::min() >> (64 - bits)) return fmt::format("({}{} - 1)", value + 1, suffix);
  return value < 0 ? fmt::format("({}{})", value, suffix) : fmt::format("{}{}", value, suffix);
}

std::string integer_type(const std::array<std::string_view, 4>& names, int bits) {
  return std::string(names[static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(bits / 8)))]);
}

}  // namespace

std::string c_unsigned_type(const CDialect& dialect, int bits) { return integer_type(dialect.unsigned_integers, bits); }

std::string c_register_type(const CDialect& dialect, DType t) {
  if (is_bool(t)) return "bool";
  if (is_float(t)) return t == f64 ? "double" : "float";
  return integer_type(is_unsigned_int(t) ? dialect.unsigned_integers : dialect.signed_integers, info(t).bits);
}

std::string c_memory_type(const CDialect& dialect, DType t) {
  const bool as_bits = is_bool(t) || (is_float(t) && info(t).bits == 16);
  return as_bits ? c_unsigned_type(dialect, info(t).bits) : c_register_type(dialect, t);
}

std::string c_constant(const CDialect& dialect, const Expr& e) {
  if (is_float(e.dtype)) return float_literal(e.number, e.dtype);
  if (is_bool(e.dtype)) return e.integer ? "true" : "false";
  return int_literal(dialect, e.integer, e.dtype);
}

std::string CScalars::prelude() const { return c_prelude(dialect_, used_); }

std::string CScalars::fma(const std::string& a, const std::string& b, const std::string& c, DType t) {
  return fmt::format("fma{}({}, {}, {})", t == f64 ? "" : dialect_.f32_suffix, a, b, c);
}

std::string CScalars::from_memory(const std::string& raw, DType t) {
  if (is_bool(t)) return raw + " != 0";
  return register_type(t) == t ? raw : call(fmt::format("rlx_{}_to_f32", rlx::name(t)), raw);
}

std::string CScalars::to_memory(const std::string& value, DType t) {
  return register_type(t) == t ? value : call(fmt::format("rlx_f32_to_{}", rlx::name(t)), value);
}

std::string CScalars::cast(const std::string& x, DType from, DType to) {
  const DType wide = register_type(from), target = register_type(to);
  if (is_bool(to)) return is_bool(from) ? x : x + " != 0";
  if (is_integer(to) && is_float(from)) return call(fmt::format("rlx_{}_to_{}", rlx::name(wide), rlx::name(to)), x);
  const std::string converted = wide == target ? x : "(" + type_name(target) + ")" + x;
  return target == to ? converted : from_memory(to_memory(converted, to), to);
}

std::string CScalars::bitcast(const std::string& x, DType from, DType to) {
  // Narrow floats change their width on the way to memory and back; what is left is between types of one width.
  const auto memory = [](DType t) { return register_type(t) == t ? t : u16; };
  const DType a = memory(from), b = memory(to);
  const std::string raw = to_memory(x, from);
  std::string bits = raw;
  if (is_float(a) != is_float(b)) bits = call(fmt::format("rlx_bits_{}_{}", rlx::name(a), rlx::name(b)), raw);
  else if (a != b) bits = "(" + type_name(b) + ")" + raw;
  return is_bool(to) || register_type(to) != to ? from_memory(bits, to) : bits;
}

std::string_view CScalars::pattern(ScalarOp op, DType t) const {
  for (const CRow& row : rows)
    if (row.op == op) return is_float(t) ? row.floating : is_bool(t) ? row.boolean : is_signed_int(t) ? row.signed_int : row.unsigned_int;
  return "";
}

ScalarText::Words CScalars::words(DType t) const {
  return {"(" + type_name(t) + ")", "(" + c_unsigned_type(dialect_, info(t).bits == 64 ? 64 : 32) + ")",
          t == f64 ? "" : dialect_.f32_suffix, dialect_.nearest};
}

}  // namespace rlx
