#include "emit/c_prelude.h"

#include <cmath>

#include "emit/c_scalar.h"

namespace rlx {
namespace {

constexpr std::string_view f32_to_bf16 = R"(static inline uint16_t rlx_f32_to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if (x != x) return (uint16_t)((bits | 0x400000u) >> 16);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);  // nearest, ties to even
}
)";

constexpr std::string_view bf16_to_f32 = R"(static inline float rlx_bf16_to_f32(uint16_t x) {
  const uint32_t bits = (uint32_t)x << 16;
  float y;
  memcpy(&y, &bits, 4);
  return y;
}
)";

constexpr std::string_view f32_to_f16 = R"(static inline uint16_t rlx_f32_to_f16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  const uint32_t sign = (bits >> 16) & 0x8000u, a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x1ffu));
  if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);  // 65520 and above
  if (a >= 0x38800000u) return (uint16_t)(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13));
  if (a < 0x33000000u) return (uint16_t)sign;  // below 2^-25
  const uint32_t mantissa = (a & 0x7fffffu) | 0x800000u, shift = 126u - (a >> 23);  // subnormal: units of 2^-24
  const uint32_t rest = mantissa & ((1u << shift) - 1u), half = 1u << (shift - 1u), units = mantissa >> shift;
  return (uint16_t)(sign | (units + (rest > half || (rest == half && (units & 1u)))));
}
)";

constexpr std::string_view f16_to_f32 = R"(static inline float rlx_f16_to_f32(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, exponent = (x >> 10) & 0x1fu, mantissa = x & 0x3ffu;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)mantissa * 0x1p-24f;
  const uint32_t top = exponent == 31 ? 0x7f800000u | (mantissa ? 0x400000u : 0u) : (exponent + 112u) << 23;
  const uint32_t bits = sign | top | mantissa << 13;
  float y;
  memcpy(&y, &bits, 4);
  return y;
}
)";

constexpr std::string_view extremum = R"(static inline {T} rlx_{name}_{t}({T} a, {T} b) {{
  if (a != a || b != b) return a + b;
  if (a == b) return signbit(a) {same} ? b : a;
  return a {better} b ? a : b;
}}
)";

constexpr std::string_view bits_of = R"(static inline {B} rlx_bits_{a}_{b}({A} x) {{
  {B} y;
  memcpy(&y, &x, sizeof y);
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

std::string integer_limit(DType t, bool high) { return c_neutral(high ? ReduceKind::min : ReduceKind::max, t); }

std::string float_to_int(DType from, DType to) {
  const bool is_signed = is_signed_int(to);
  const int bits = info(to).bits;
  const std::string lowest = integer_limit(to, false), bound = fmt::format("0x1p{}", bits - is_signed) + (from == f64 ? "" : "f");
  return fmt::format(to_int, fmt::arg("T", c_register_type(to)), fmt::arg("F", c_register_type(from)), fmt::arg("from", name(from)),
                     fmt::arg("to", name(to)), fmt::arg("low", is_signed ? "-" + bound : "0"),
                     fmt::arg("nan_or_lowest", is_signed ? "x != x ? 0 : " + lowest : "0"), fmt::arg("high", bound),
                     fmt::arg("highest", integer_limit(to, true)));
}

std::string division(bool quotient, DType t) {
  return fmt::format(fmt::runtime(is_signed_int(t) ? signed_division : unsigned_division), fmt::arg("T", c_register_type(t)),
                     fmt::arg("t", name(t)), fmt::arg("name", quotient ? "div" : "rem"), fmt::arg("op", quotient ? "/" : "%"),
                     fmt::arg("by_zero", !quotient          ? "x"
                                         : is_signed_int(t) ? "-1"
                                                            : integer_limit(t, true)),
                     fmt::arg("by_minus_one", quotient ? fmt::format("(0 - (uint{}_t)x)", info(t).bits) : "0"));
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

std::string definition(const std::string& name) {
  if (name == "rlx_f32_to_bf16") return std::string(f32_to_bf16);
  if (name == "rlx_bf16_to_f32") return std::string(bf16_to_f32);
  if (name == "rlx_f32_to_f16") return std::string(f32_to_f16);
  if (name == "rlx_f16_to_f32") return std::string(f16_to_f32);
  const std::vector<std::string> parts = parts_of(name);
  const DType last = parse_dtype(parts.back()).value();
  if (parts[0] == "div" || parts[0] == "rem") return division(parts[0] == "div", last);
  if (parts[0] == "max" || parts[0] == "min")
    return fmt::format(extremum, fmt::arg("name", parts[0]), fmt::arg("t", parts[1]), fmt::arg("T", c_register_type(last)),
                       fmt::arg("same", parts[0] == "max" ? "!= 0" : "== 0"), fmt::arg("better", parts[0] == "max" ? ">" : "<"));
  if (parts[0] == "bits")
    return fmt::format(bits_of, fmt::arg("a", parts[1]), fmt::arg("b", parts[2]),
                       fmt::arg("A", c_register_type(parse_dtype(parts[1]).value())), fmt::arg("B", c_register_type(last)));
  return float_to_int(parse_dtype(parts[0]).value(), last);
}

}  // namespace

std::string c_prelude(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += definition(name);
  return text;
}

}  // namespace rlx
