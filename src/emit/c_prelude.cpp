#include "emit/c_prelude.h"

#include <cmath>

#include "emit/c_scalar.h"

namespace rlx {
namespace {

// In these, U and H are the unsigned integers of 32 and 16 bits.
constexpr std::string_view f32_to_bf16 = R"(static inline {H} rlx_f32_to_bf16(float x) {{
  {bits_of_x}
  if (x != x) return ({H})((bits | 0x400000u) >> 16);
  return ({H})((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);  // nearest, ties to even
}}
)";

constexpr std::string_view bf16_to_f32 = R"(static inline float rlx_bf16_to_f32({H} x) {{
  const {U} bits = ({U})x << 16;
  {float_of_bits}
  return y;
}}
)";

constexpr std::string_view f32_to_f16 = R"(static inline {H} rlx_f32_to_f16(float x) {{
  {bits_of_x}
  const {U} sign = (bits >> 16) & 0x8000u, a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) return ({H})(sign | 0x7e00u | ((a >> 13) & 0x1ffu));
  if (a >= 0x477ff000u) return ({H})(sign | 0x7c00u);  // 65520 and above
  if (a >= 0x38800000u) return ({H})(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13));
  if (a < 0x33000000u) return ({H})sign;  // below 2^-25
  const {U} mantissa = (a & 0x7fffffu) | 0x800000u, shift = 126u - (a >> 23);  // subnormal: units of 2^-24
  const {U} rest = mantissa & ((1u << shift) - 1u), tie = 1u << (shift - 1u), units = mantissa >> shift;
  return ({H})(sign | (units + (rest > tie || (rest == tie && (units & 1u)))));
}}
)";

constexpr std::string_view f16_to_f32 = R"(static inline float rlx_f16_to_f32({H} x) {{
  const {U} sign = ({U})(x & 0x8000u) << 16, exponent = (x >> 10) & 0x1fu, mantissa = x & 0x3ffu;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)mantissa * 0x1p-24f;
  const {U} top = exponent == 31 ? 0x7f800000u | (mantissa ? 0x400000u : 0u) : (exponent + 112u) << 23;
  const {U} bits = sign | top | mantissa << 13;
  {float_of_bits}
  return y;
}}
)";

constexpr std::string_view extremum = R"(static inline {T} rlx_{name}_{t}({T} a, {T} b) {{
  if (a != a || b != b) return a + b;
  if (a == b) return signbit(a) {same} ? b : a;
  return a {better} b ? a : b;
}}
)";

constexpr std::string_view bits_of = R"(static inline {B} rlx_bits_{a}_{b}({A} x) {{
  {bits}
  return y;
}}
)";

// Bounds are powers of two, so they are exact in both float types.
constexpr std::string_view to_int = R"(static inline {T} rlx_{from}_to_{to}({F} x) {{
  if (!(x > {low})) return {nan_or_lowest};
  return x >= {high} ? {highest} : ({T})x;
}}
)";

constexpr std::string_view unsigned_division = R"(static inline {T} rlx_{name}_{t}({T} x, {T} z) {{
  return z == 0 ? {by_zero} : ({T})(x {op} z);
}}
)";

constexpr std::string_view signed_division = R"(static inline {T} rlx_{name}_{t}({T} x, {T} z) {{
  if (z == 0) return {by_zero};
  return z == -1 ? ({T}){by_minus_one} : ({T})(x {op} z);  // the lowest integer / -1 overflows
}}
)";

/// Declares `to` of this type: the bits of `from`.
std::string bits(const CDialect& dialect, DType type, std::string_view to, std::string_view from, std::string_view size) {
  return fmt::format(fmt::runtime(dialect.bits), fmt::arg("T", c_register_type(dialect, type)), fmt::arg("y", to), fmt::arg("x", from),
                     fmt::arg("size", size));
}

std::string narrow_float(const CDialect& dialect, std::string_view form) {
  return fmt::format(fmt::runtime(form), fmt::arg("U", c_unsigned_type(dialect, 32)), fmt::arg("H", c_unsigned_type(dialect, 16)),
                     fmt::arg("bits_of_x", bits(dialect, u32, "bits", "x", "4")),
                     fmt::arg("float_of_bits", bits(dialect, f32, "y", "bits", "4")));
}

std::string integer_limit(const CDialect& dialect, DType t, bool high) {
  return c_neutral(dialect, high ? ReduceKind::min : ReduceKind::max, t);
}

std::string float_to_int(const CDialect& dialect, DType from, DType to) {
  const bool is_signed = is_signed_int(to);
  const int bits = info(to).bits;
  const std::string lowest = integer_limit(dialect, to, false), bound = fmt::format("0x1p{}", bits - is_signed) + (from == f64 ? "" : "f");
  return fmt::format(to_int, fmt::arg("T", c_register_type(dialect, to)), fmt::arg("F", c_register_type(dialect, from)),
                     fmt::arg("from", name(from)), fmt::arg("to", name(to)), fmt::arg("low", is_signed ? "-" + bound : "0"),
                     fmt::arg("nan_or_lowest", is_signed ? "x != x ? 0 : " + lowest : "0"), fmt::arg("high", bound),
                     fmt::arg("highest", integer_limit(dialect, to, true)));
}

std::string division(const CDialect& dialect, bool quotient, DType t) {
  return fmt::format(fmt::runtime(is_signed_int(t) ? signed_division : unsigned_division), fmt::arg("T", c_register_type(dialect, t)),
                     fmt::arg("t", name(t)), fmt::arg("name", quotient ? "div" : "rem"), fmt::arg("op", quotient ? "/" : "%"),
                     fmt::arg("by_zero", !quotient          ? "x"
                                         : is_signed_int(t) ? "-1"
                                                            : integer_limit(dialect, t, true)),
                     fmt::arg("by_minus_one", quotient ? "(0 - (" + c_unsigned_type(dialect, info(t).bits) + ")x)" : "0"));
}

/// "rlx_A_B_C" as A, B, C.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t at = 4; at <= name.size();) {
    const std::size_t end = std::min(name.find('_', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string definition(const CDialect& dialect, const std::string& name) {
  if (name == "rlx_f32_to_bf16") return narrow_float(dialect, f32_to_bf16);
  if (name == "rlx_bf16_to_f32") return narrow_float(dialect, bf16_to_f32);
  if (name == "rlx_f32_to_f16") return narrow_float(dialect, f32_to_f16);
  if (name == "rlx_f16_to_f32") {
    const std::string text = narrow_float(dialect, f16_to_f32);
    return dialect.f16_to_f32.empty() ? text : fmt::format(fmt::runtime(dialect.f16_to_f32), fmt::arg("text", text));
  }
  const std::vector<std::string> parts = parts_of(name);
  const DType last = parse_dtype(parts.back()).value();
  if (parts[0] == "div" || parts[0] == "rem") return division(dialect, parts[0] == "div", last);
  if (parts[0] == "max" || parts[0] == "min")
    return fmt::format(extremum, fmt::arg("name", parts[0]), fmt::arg("t", parts[1]), fmt::arg("T", c_register_type(dialect, last)),
                       fmt::arg("same", parts[0] == "max" ? "!= 0" : "== 0"), fmt::arg("better", parts[0] == "max" ? ">" : "<"));
  if (parts[0] == "bits")
    return fmt::format(bits_of, fmt::arg("a", parts[1]), fmt::arg("b", parts[2]),
                       fmt::arg("A", c_register_type(dialect, parse_dtype(parts[1]).value())),
                       fmt::arg("B", c_register_type(dialect, last)), fmt::arg("bits", bits(dialect, last, "y", "x", "sizeof y")));
  return float_to_int(dialect, parse_dtype(parts[0]).value(), last);
}

}  // namespace

std::string c_prelude(const CDialect& dialect, const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format(fmt::runtime(dialect.definition), fmt::arg("name", name), fmt::arg("text", definition(dialect, name)));
  return text;
}

}  // namespace rlx
