#include "emit/c_prelude.h"

#include "emit/c_scalar.h"
#include "emit/function_text.h"

namespace rlx {
namespace {

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

FunctionWords words_of(const CDialect& dialect) {
  return {"static inline {R} {name}({A} x) {{\n", "static inline {R} {name}({A} x, {A} z) {{\n", "const {T}", dialect.bits, "({T})"};
}

std::string definition(const CDialect& dialect, const std::string& name) {
  if (name == "rlx_dots") return std::string(dialect.dots);
  CScalars scalars(dialect);
  const FunctionText functions(words_of(dialect), scalars);
  if (std::string text = functions.narrow_float(name); !text.empty())
    return name == "rlx_f16_to_f32" && !dialect.f16_to_f32.empty() ? fmt::format(fmt::runtime(dialect.f16_to_f32), fmt::arg("text", text))
                                                                   : text;
  const std::vector<std::string> parts = parts_of(name);
  const DType last = parse_dtype(parts.back()).value();
  const std::string type = scalars.type_name(last);
  if (parts[0] == "div" || parts[0] == "rem") return functions.division(parts[0] == "div", last);
  if (parts[0] == "max" || parts[0] == "min")
    return fmt::format(extremum, fmt::arg("name", parts[0]), fmt::arg("t", parts[1]), fmt::arg("T", type),
                       fmt::arg("same", parts[0] == "max" ? "!= 0" : "== 0"), fmt::arg("better", parts[0] == "max" ? ">" : "<"));
  const DType first = parse_dtype(parts[parts[0] == "bits" ? 1 : 0]).value();
  if (parts[0] == "bits")
    return fmt::format(bits_of, fmt::arg("a", parts[1]), fmt::arg("b", parts[2]), fmt::arg("A", scalars.type_name(first)),
                       fmt::arg("B", type),
                       fmt::arg("bits", fmt::format(fmt::runtime(dialect.bits), fmt::arg("T", type), fmt::arg("y", "y"), fmt::arg("x", "x"),
                                                    fmt::arg("size", "sizeof y"))));
  return functions.float_to_int(first, last, "x != x");
}

}  // namespace

std::string c_prelude(const CDialect& dialect, const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format(fmt::runtime(dialect.definition), fmt::arg("name", name), fmt::arg("text", definition(dialect, name)));
  return text;
}

}  // namespace rlx
