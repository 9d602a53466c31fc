#include "emit/function_text.h"

#include <array>

namespace rlx {
namespace {

struct NarrowFloat {
  std::string_view name;
  DType from, to;
  std::string_view body;
};

// In these, {u} begins a constant of 32 bits, {U} and {H} make the unsigned integers of 32 and 16 bits of what is in brackets.
constexpr std::array<NarrowFloat, 4> narrow_floats{{
    {"rlx_f32_to_bf16", f32, u16, R"(  {bits_of_x}
  if ((bits & 0x7fffffffu) > 0x7f800000u) {{ return {H}((bits | 0x400000u) >> 16u); }}
  return {H}((bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u);  // nearest, ties to even
)"},
    {"rlx_bf16_to_f32", u16, f32, R"(  {u} bits = {U}(x) << 16u;
  {y_of_bits}
  return y;
)"},
    {"rlx_f32_to_f16", f32, u16, R"(  {bits_of_x}
  {u} sign = (bits >> 16u) & 0x8000u;
  {u} a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) {{ return {H}(sign | 0x7e00u | ((a >> 13u) & 0x1ffu)); }}
  if (a >= 0x477ff000u) {{ return {H}(sign | 0x7c00u); }}  // 65520 and above
  if (a >= 0x38800000u) {{ return {H}(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13u) & 1u)) >> 13u)); }}
  if (a < 0x33000000u) {{ return {H}(sign); }}  // below 2^-25
  {u} mantissa = (a & 0x7fffffu) | 0x800000u;
  {u} shift = 126u - (a >> 23u);  // subnormal: units of 2^-24
  return {H}(sign | ((mantissa + (1u << (shift - 1u)) - 1u + ((mantissa >> shift) & 1u)) >> shift));
)"},
    {"rlx_f16_to_f32", u16, f32, R"(  {u} sign = ({U}(x) & 0x8000u) << 16u;
  {u} exponent = ({U}(x) >> 10u) & 0x1fu;
  {u} mantissa = {U}(x) & 0x3ffu;
  if (exponent == 0u) {{
    {f} size = {F}(mantissa) * 5.9604644775390625e-8f;
    {size_bits_of_size}
    {u} bits = sign | size_bits;
    {y_of_bits}
    return y;
  }}
  {u} special = (exponent + 1u) >> 5u;  // 1: infinity or NaN, whose highest bit is set
  {u} quiet = special * ((mantissa + 0x3ffu) >> 10u);
  {u} bits = sign | ((exponent + 112u + 112u * special) << 23u) | (mantissa << 13u) | (quiet << 22u);
  {y_of_bits}
  return y;
)"},
}};

}  // namespace

std::string FunctionText::open(std::string_view form, const std::string& name, DType argument, DType result) const {
  return fmt::format(fmt::runtime(form), fmt::arg("name", name), fmt::arg("A", scalars_.type_name(argument)),
                     fmt::arg("R", scalars_.type_name(result)));
}

std::string FunctionText::conversion(DType t) const {
  return fmt::format(fmt::runtime(words_.convert), fmt::arg("T", scalars_.type_name(t)));
}

std::string FunctionText::bits(DType t, std::string_view to, std::string_view from) const {
  return fmt::format(fmt::runtime(words_.bits), fmt::arg("T", scalars_.type_name(t)), fmt::arg("y", to), fmt::arg("x", from),
                     fmt::arg("size", "4"));
}

std::string FunctionText::narrow_float(const std::string& name) const {
  const auto constant = [&](DType t) { return fmt::format(fmt::runtime(words_.constant), fmt::arg("T", scalars_.type_name(t))); };
  for (const NarrowFloat& function : narrow_floats)
    if (function.name == name)
      return open(words_.of_one, name, function.from, function.to) +
             fmt::format(fmt::runtime(function.body), fmt::arg("u", constant(u32)), fmt::arg("f", constant(f32)),
                         fmt::arg("U", conversion(u32)), fmt::arg("H", conversion(u16)), fmt::arg("F", conversion(f32)),
                         fmt::arg("bits_of_x", bits(u32, "bits", "x")), fmt::arg("size_bits_of_size", bits(u32, "size_bits", "size")),
                         fmt::arg("y_of_bits", bits(f32, "y", "bits"))) +
             "}\n";
  return {};
}

/// Bounds are powers of two, so they are exact in both float types.
std::string FunctionText::float_to_int(DType from, DType to, std::string_view is_nan) const {
  const std::string bound = fmt::format("0x1p{}{}", info(to).bits - is_signed_int(to), from == f64 ? "" : "f");
  std::string text = open(words_.of_one, fmt::format("rlx_{}_to_{}", name(from), name(to)), from, to);
  if (is_signed_int(to)) text += fmt::format("  if ({}) {{ return 0; }}\n", is_nan);
  return text + fmt::format("  if (!(x > {})) {{ return {}; }}\n  if (x >= {}) {{ return {}; }}\n  return {}(x);\n}}\n",
                            is_signed_int(to) ? "-" + bound : "0", scalars_.literal(neutral_of(ReduceKind::max, to)), bound,
                            scalars_.literal(neutral_of(ReduceKind::min, to)), conversion(to));
}

std::string FunctionText::division(bool quotient, DType t) const {
  Expr all_bits;
  all_bits.dtype = t, all_bits.integer = -1;
  std::string text = open(words_.of_two, fmt::format("rlx_{}_{}", quotient ? "div" : "rem", name(t)), t, t);
  text += fmt::format("  if (z == 0) {{ return {}; }}\n", quotient ? scalars_.literal(all_bits) : "x");
  if (is_signed_int(t))  // the lowest integer / -1 overflows
    text += fmt::format("  if (z == -1) {{ return {}; }}\n", quotient ? scalars_.emit(ScalarOp::neg, {{"x", t}}, t) : "0");
  return text + fmt::format("  return {}(x {} z);\n}}\n", conversion(t), quotient ? "/" : "%");
}

}  // namespace rlx
