#include "emit/c_scalar.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "emit/c_prelude.h"

namespace rlx {
namespace {

/// How an op is written for each class of types. In the patterns x, z, w are operands, T is the type in registers, U the unsigned type
/// in which arithmetic wraps, t the type's short name, f the suffix of the functions of that type, bits its width.
struct CRow {
  ScalarOp op;
  std::string_view floating, signed_int, unsigned_int, boolean;
};
using enum ScalarOp;
constexpr std::array<CRow, 38> rows{{
    {neg, "-{x}", "({T})(0 - ({U}){x})", "({T})(0 - ({U}){x})", ""},
    {abs, "fabs{f}({x})", "({T})({x} < 0 ? 0 - ({U}){x} : ({U}){x})", "{x}", ""},
    {sign, "({x} > 0 ? 1 : {x} < 0 ? -1 : {x})", "({T})(({x} > 0) - ({x} < 0))", "({T})({x} != 0)", ""},
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
    {logical_not, "", "({T})~{x}", "({T})~{x}", "!{x}"},
    {add, "{x} + {z}", "({T})(({U}){x} + ({U}){z})", "({T})(({U}){x} + ({U}){z})", ""},
    {sub, "{x} - {z}", "({T})(({U}){x} - ({U}){z})", "({T})(({U}){x} - ({U}){z})", ""},
    {mul, "{x} * {z}", "({T})(({U}){x} * ({U}){z})", "({T})(({U}){x} * ({U}){z})", ""},
    {div, "{x} / {z}", "rlx_div_{t}({x}, {z})", "rlx_div_{t}({x}, {z})", ""},
    {rem, "fmod{f}({x}, {z})", "rlx_rem_{t}({x}, {z})", "rlx_rem_{t}({x}, {z})", ""},
    {pow, "pow{f}({x}, {z})", "", "", ""},
    {max, "rlx_max_{t}({x}, {z})", "({x} < {z} ? {z} : {x})", "({x} < {z} ? {z} : {x})", "{x} || {z}"},
    {min, "rlx_min_{t}({x}, {z})", "({z} < {x} ? {z} : {x})", "({z} < {x} ? {z} : {x})", "{x} && {z}"},
    {logical_and, "", "({T})({x} & {z})", "({T})({x} & {z})", "{x} && {z}"},
    {logical_or, "", "({T})({x} | {z})", "({T})({x} | {z})", "{x} || {z}"},
    {logical_xor, "", "({T})({x} ^ {z})", "({T})({x} ^ {z})", "{x} != {z}"},
    {shl, "", "(({U}){z} < {bits} ? ({T})(({U}){x} << {z}) : 0)", "(({U}){z} < {bits} ? ({T})(({U}){x} << {z}) : 0)", ""},
    {shr, "", "({T})({x} >> (({U}){z} < {bits} ? {z} : {bits} - 1))", "({z} < {bits} ? ({T})({x} >> {z}) : 0)", ""},
    {eq, "{x} == {z}", "{x} == {z}", "{x} == {z}", "{x} == {z}"},
    {ne, "{x} != {z}", "{x} != {z}", "{x} != {z}", "{x} != {z}"},
    {lt, "{x} < {z}", "{x} < {z}", "{x} < {z}", "{x} < {z}"},
    {le, "{x} <= {z}", "{x} <= {z}", "{x} <= {z}", "{x} <= {z}"},
    {gt, "{x} > {z}", "{x} > {z}", "{x} > {z}", "{x} > {z}"},
    {ge, "{x} >= {z}", "{x} >= {z}", "{x} >= {z}", "{x} >= {z}"},
    {select, "{x} ? {z} : {w}", "{x} ? {z} : {w}", "{x} ? {z} : {w}", "{x} ? {z} : {w}"},
}};

std::string_view pattern(ScalarOp op, DType t) {
  for (const CRow& row : rows)
    if (row.op == op) return is_float(t) ? row.floating : is_bool(t) ? row.boolean : is_signed_int(t) ? row.signed_int : row.unsigned_int;
  return "";
}

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

std::string c_neutral(const CDialect& dialect, ReduceKind kind, DType t) {
  const bool low = kind == ReduceKind::max;
  if (kind == ReduceKind::sum || kind == ReduceKind::prod) return kind == ReduceKind::prod ? "1" : "0";
  if (is_float(t)) return low ? "-INFINITY" : "INFINITY";
  if (is_bool(t)) return low ? "false" : "true";
  const int bits = info(t).bits;
  if (is_unsigned_int(t)) return low ? "0" : int_literal(dialect, -1, t);
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min() >> (64 - bits);
  return int_literal(dialect, low ? lowest : ~lowest, t);
}

std::string CScalars::helper(const std::string& name) {
  used_.insert(name);
  return name;
}

std::string CScalars::prelude() const { return c_prelude(dialect_, used_); }

std::string CScalars::fma(const std::string& a, const std::string& b, const std::string& c, DType t) const {
  return fmt::format("fma{}({}, {}, {})", t == f64 ? "" : dialect_.f32_suffix, a, b, c);
}

std::string CScalars::combine(ReduceKind kind, const std::string& a, const std::string& b, DType t) {
  constexpr std::array<ScalarOp, 4> ops{ScalarOp::add, ScalarOp::max, ScalarOp::min, ScalarOp::mul};  // in the order of ReduceKind
  return emit(ops[static_cast<std::size_t>(kind)], {{a, t}, {b, t}}, t);
}

std::string CScalars::from_memory(const std::string& raw, DType t) {
  if (is_bool(t)) return raw + " != 0";
  return register_type(t) == t ? raw : helper(fmt::format("rlx_{}_to_f32", rlx::name(t))) + "(" + raw + ")";
}

std::string CScalars::to_memory(const std::string& value, DType t) {
  return register_type(t) == t ? value : helper(fmt::format("rlx_f32_to_{}", rlx::name(t))) + "(" + value + ")";
}

std::string CScalars::cast(const std::string& x, DType from, DType to) {
  const DType wide = register_type(from), target = register_type(to);
  if (is_bool(to)) return is_bool(from) ? x : x + " != 0";
  if (is_integer(to) && is_float(from)) return helper(fmt::format("rlx_{}_to_{}", rlx::name(wide), rlx::name(to))) + "(" + x + ")";
  const std::string converted = wide == target ? x : "(" + c_register_type(dialect_, target) + ")" + x;
  return target == to ? converted : from_memory(to_memory(converted, to), to);
}

std::string CScalars::bitcast(const std::string& x, DType from, DType to) {
  // Narrow floats change their width on the way to memory and back; what is left is between types of one width.
  const auto memory = [](DType t) { return register_type(t) == t ? t : u16; };
  const DType a = memory(from), b = memory(to);
  const std::string raw = to_memory(x, from);
  std::string bits = raw;
  if (is_float(a) != is_float(b)) bits = helper(fmt::format("rlx_bits_{}_{}", rlx::name(a), rlx::name(b))) + "(" + raw + ")";
  else if (a != b) bits = "(" + c_register_type(dialect_, b) + ")" + raw;
  return is_bool(to) || register_type(to) != to ? from_memory(bits, to) : bits;
}

std::string CScalars::emit(ScalarOp op, const std::vector<Operand>& args, DType result) {
  if (op == ScalarOp::cast) return cast(args[0].value, args[0].dtype, result);
  if (op == ScalarOp::bitcast) return bitcast(args[0].value, args[0].dtype, result);
  // Comparisons are those of their operands.
  const DType t = op >= ScalarOp::eq && op <= ScalarOp::ge ? args[0].dtype : result;
  const std::string_view form = pattern(op, t);
  if (form.empty()) fail_internal("emit: {} on {}", rlx::name(op), rlx::name(t));
  const auto operand = [&](std::size_t i) { return i < args.size() ? args[i].value : std::string(); };
  const DType reg = register_type(t);
  const std::string text =
      fmt::format(fmt::runtime(form), fmt::arg("x", operand(0)), fmt::arg("z", operand(1)), fmt::arg("w", operand(2)),
                  fmt::arg("T", c_register_type(dialect_, t)), fmt::arg("U", c_unsigned_type(dialect_, info(t).bits == 64 ? 64 : 32)),
                  fmt::arg("t", rlx::name(reg)), fmt::arg("f", t == f64 ? "" : dialect_.f32_suffix), fmt::arg("nearest", dialect_.nearest),
                  fmt::arg("bits", info(t).bits));
  if (text.starts_with("rlx_")) helper(text.substr(0, text.find('(')));
  return text;
}

}  // namespace rlx
