// Ops of elements. Narrow integers are computed in 32 bits, and wrap as theirs do.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

/// With the highest bit turned: u32 in the order of i32, and back.
Tensor signed_order(Body& out, const Tensor& x) { return binary(out, "add", x, number(x, std::ldexp(-1, 31))); }
/// An operand as numbers that CoreML compares.
Tensor ordered(const Call& c, std::size_t operand) {
  const Tensor& x = c.x[operand];
  if (c.type(operand) == u32) return signed_order(c.out, x);
  return movable(c.out, x);
}

/// An op under its name in MIL.
std::string_view mil_name(std::string_view op) {
  static const std::map<std::string_view, std::string_view> others{{"max", "maximum"},  {"min", "minimum"},     {"eq", "equal"},
                                                                   {"ne", "not_equal"}, {"lt", "less"},         {"le", "less_equal"},
                                                                   {"gt", "greater"},   {"ge", "greater_equal"}};
  const auto other = others.find(op);
  return other == others.end() ? op : other->second;
}

Tensors direct(const Call& c) {
  const std::string_view name = mil_name(c.node.op->name);
  if (c.type(0) == u32 && (name == "maximum" || name == "minimum"))
    return {signed_order(c.out, binary(c.out, name, ordered(c, 0), ordered(c, 1)))};
  if (c.x.size() == 1) return {wrapped(c.out, unary(c.out, name, c.x[0]), c.result_type())};
  if (c.x[0].element != Element::boolean) return {wrapped(c.out, binary(c.out, name, c.x[0], c.x[1]), c.result_type())};
  return {compare(c.out, name == "maximum" ? "logical_or" : "logical_and", c.x[0], c.x[1])};
}

Tensors neg(const Call& c) { return {wrapped(c.out, binary(c.out, "mul", c.x[0], number(c.x[0], -1)), c.result_type())}; }

Tensors sign(const Call& c) {
  const Tensor y = unary(c.out, "sign", c.x[0]);
  return {c.x[0].element == Element::i32 ? y : select(c.out, is_nan(c.out, c.x[0]), c.x[0], y)};
}

Tensor log_of(Body& out, const Tensor& x) { return out.add("log", {{"x", x}, {"epsilon", number(x, 0)}}, x.element, x.shape); }
Tensors log(const Call& c) { return {log_of(c.out, c.x[0])}; }

Tensors rsqrt(const Call& c) { return {binary(c.out, "real_div", number(c.x[0], 1), unary(c.out, "sqrt", c.x[0]))}; }

/// x log(u) / (u - 1) with u = 1 + x: the rounding of u is in both, and cancels (Kahan).
Tensors log1p(const Call& c) {
  const Tensor &x = c.x[0], u = binary(c.out, "add", x, number(x, 1)), less = binary(c.out, "sub", u, number(x, 1));
  const Tensor tiny = compare(c.out, "equal", less, number(x, 0)), safe = select(c.out, tiny, number(x, 1), less);
  const Tensor y = binary(c.out, "real_div", binary(c.out, "mul", x, log_of(c.out, u)), safe);
  const Tensor endless = compare(c.out, "equal", x, number(x, INFINITY));
  return {select(c.out, compare(c.out, "logical_or", tiny, endless), x, y)};
}

/// (u - 1) x / log(u) with u = e^x, for the same reason.
Tensors expm1(const Call& c) {
  const Tensor &x = c.x[0], u = unary(c.out, "exp", x), less = binary(c.out, "sub", u, number(x, 1));
  const Tensor tiny = compare(c.out, "equal", less, number(x, 0)), far = compare(c.out, "greater", unary(c.out, "abs", x), number(x, 5));
  const Tensor safe = select(c.out, compare(c.out, "logical_or", tiny, far), number(x, 2), u);
  const Tensor y = binary(c.out, "real_div", binary(c.out, "mul", less, x), log_of(c.out, safe));
  return {select(c.out, far, less, select(c.out, tiny, x, y))};
}

/// Integers: towards 0, and all bits set where the divisor is 0.
Tensors div(const Call& c) {
  const Tensor &x = c.x[0], &z = c.x[1];
  if (x.element != Element::i32) return {binary(c.out, "real_div", x, z)};
  const Tensor none = compare(c.out, "equal", z, number(z, 0)), safe = select(c.out, none, number(z, 1), z);
  const Tensor down = binary(c.out, "floor_div", x, safe);
  const Tensor rest = binary(c.out, "sub", x, binary(c.out, "mul", down, safe));
  const Tensor apart = compare(c.out, "not_equal", rest, number(rest, 0));
  const Tensor turned = compare(c.out, "logical_xor", compare(c.out, "less", x, number(x, 0)), compare(c.out, "less", safe, number(x, 0)));
  const Tensor up = convert(c.out, compare(c.out, "logical_and", apart, turned), Element::i32);
  return {wrapped(c.out, select(c.out, none, number(x, -1), binary(c.out, "add", down, up)), c.result_type())};
}

/// The remainder of |x| by |z|, with the sign of x.
Tensors rem(const Call& c) {
  const Tensor &x = c.x[0], &z = c.x[1];
  const Tensor negative = compare(c.out, "less", x, number(x, 0));
  if (x.element == Element::i32) {
    const Tensor none = compare(c.out, "equal", z, number(z, 0)), safe = select(c.out, none, number(z, 1), z);
    const Tensor low = binary(c.out, "mod", x, safe);  // with the sign of z
    const Tensor turned = compare(c.out, "logical_xor", negative, compare(c.out, "less", safe, number(z, 0)));
    const Tensor apart = compare(c.out, "not_equal", low, number(low, 0));
    const Tensor y = select(c.out, compare(c.out, "logical_and", apart, turned), binary(c.out, "sub", low, safe), low);
    return {select(c.out, none, x, y)};
  }
  const Tensor size = binary(c.out, "mod", unary(c.out, "abs", x), unary(c.out, "abs", z));
  return {select(c.out, negative, binary(c.out, "mul", size, number(size, -1)), size)};
}

Tensors comparison(const Call& c) { return {compare(c.out, mil_name(c.node.op->name), ordered(c, 0), ordered(c, 1))}; }

/// Byte by byte.
Tensor common_bits(const Call& c) {
  const int bits = std::max(8, info(c.result_type()).bits);
  const Tensors a = bytes_of(c.out, c.x[0], bits), b = bytes_of(c.out, c.x[1], bits);
  Tensors common;
  for (std::size_t i = 0; i < a.size(); ++i) common.push_back(looked_up<std::bit_and<>>(c.out, a[i], b[i]));
  return integer_of(c.out, common);
}

Tensors logical_and_or_xor(const Call& c) {
  const std::string_view name = c.node.op->name;
  if (c.x[0].element == Element::boolean) return {compare(c.out, name, c.x[0], c.x[1])};
  const Tensor common = common_bits(c);
  if (name == "logical_and") return {wrapped(c.out, common, c.result_type())};
  const Tensor both = name == "logical_or" ? common : binary(c.out, "mul", common, number(common, 2));
  return {wrapped(c.out, binary(c.out, "sub", binary(c.out, "add", c.x[0], c.x[1]), both), c.result_type())};
}

/// Of integers: -1 - x.
Tensors logical_not_rule(const Call& c) {
  if (c.x[0].element == Element::boolean) return {logical_not(c.out, c.x[0])};
  return {wrapped(c.out, binary(c.out, "sub", number(c.x[0], -1), c.x[0]), c.result_type())};
}

/// 2^z for 0 <= z < bits, looked up; 2^31 is the lowest number.
Tensor power_of_two(Body& out, const Tensor& z, int bits) {
  Sizes powers;
  for (int i = 0; i < bits; ++i) powers.push_back(static_cast<std::int32_t>(std::uint32_t{1} << i));
  return take(out, out.constant({bits}, powers), clamped(out, z, number(z, 0), number(z, bits - 1)), 0);
}
Tensor outside(Body& out, const Tensor& z, int bits) {
  return compare(out, "logical_or", compare(out, "less", z, number(z, 0)), compare(out, "greater_equal", z, number(z, bits)));
}

Tensors shl(const Call& c) {
  const int bits = info(c.result_type()).bits;
  const Tensor y = binary(c.out, "mul", c.x[0], power_of_two(c.out, c.x[1], bits));
  return {wrapped(c.out, select(c.out, outside(c.out, c.x[1], bits), number(y, 0), y), c.result_type())};
}

/// By 1, with 0 as the highest bit.
Tensor half_of_u32(Body& out, const Tensor& x) {
  const Tensor y = binary(out, "floor_div", x, number(x, 2));
  return select(out, compare(out, "less", x, number(x, 0)), signed_order(out, y), y);
}

/// Division by a power of two goes down as shifting does; by 2^31 it leaves the sign.
Tensors shr(const Call& c) {
  const Tensor &x = c.x[0], &z = c.x[1];
  if (c.type(0) == u32) {
    const Tensor rest = power_of_two(c.out, binary(c.out, "sub", z, number(z, 1)), 31);
    const Tensor y = select(c.out, compare(c.out, "equal", z, number(z, 0)), x, binary(c.out, "floor_div", half_of_u32(c.out, x), rest));
    return {select(c.out, outside(c.out, z, 32), number(y, 0), y)};
  }
  const int bits = info(c.result_type()).bits, most = std::min(bits, 31);
  const Tensor y = binary(c.out, "floor_div", x, power_of_two(c.out, c.x[1], most));
  const Tensor negative = convert(c.out, compare(c.out, "less", x, number(x, 0)), Element::i32);
  const Tensor fill = binary(c.out, "mul", negative, number(negative, -1));
  return {select(c.out, outside(c.out, c.x[1], most), fill, y)};
}

Tensors select_rule(const Call& c) {
  const Tensor condition = c.x[0].element == Element::boolean ? c.x[0] : compare(c.out, "not_equal", c.x[0], number(c.x[0], 0));
  if (c.x[1].element != Element::boolean) return {select(c.out, condition, c.x[1], c.x[2])};
  const Tensor a = convert(c.out, c.x[1], Element::i32), b = convert(c.out, c.x[2], Element::i32);
  return {convert(c.out, select(c.out, condition, a, b), Element::boolean)};
}

/// Floats to integers: towards 0, into the range of the type, and NaN to 0.
Tensor truncated(Body& out, const Tensor& x, DType to) {
  if (to == u32) {  // in two halves
    const Tensor low = truncated(out, x, i32), high = truncated(out, binary(out, "sub", x, number(x, 0x1p31)), i32);
    const Tensor y =
        select(out, compare(out, "less", x, number(x, 0x1p31)), binary(out, "maximum", low, number(low, 0)), signed_order(out, high));
    return select(out, is_nan(out, x), number(y, 0), y);
  }
  const bool signed_type = is_signed_int(to);
  const int bits = info(to).bits - (signed_type ? 1 : 0);
  const double above = std::ldexp(1, bits), low = signed_type ? -above : 0, high = bits == 31 ? 2147483520.0 : above - 1;
  const Tensor inside = clamped(out, x, number(x, low), number(x, high));
  Tensor y = convert(out, select(out, is_nan(out, x), number(x, 0), inside), Element::i32);
  if (bits == 31) y = select(out, compare(out, "greater_equal", x, number(x, above)), number(y, 2147483647), y);
  return y;
}

Tensors cast(const Call& c) {
  const DType from = c.type(0), to = c.result_type();
  const Tensor& x = c.x[0];
  if (is_bool(to)) return {x.element == Element::boolean ? x : compare(c.out, "not_equal", x, number(x, 0))};
  if (is_float(from) && is_integer(to)) return {truncated(c.out, x, to)};
  if (from == u32 && is_float(to)) {  // halves of 16 bits are exact
    const Tensor high = binary(c.out, "mod", binary(c.out, "floor_div", x, number(x, 0x1p16)), number(x, 0x1p16));
    const Tensor low = convert(c.out, binary(c.out, "mod", x, number(x, 0x1p16)), Element::f32);
    const Tensor wide = binary(c.out, "mul", convert(c.out, high, Element::f32), Immediate(Element::f32, 0x1p16));
    return {binary(c.out, "add", wide, low)};
  }
  const Tensor y = convert(c.out, x, *element_of(to));
  return {is_integer(from) ? wrapped(c.out, y, to) : y};
}

Tensors fma(const Call& c) { return {binary(c.out, "add", binary(c.out, "mul", c.x[0], c.x[1]), c.x[2])}; }

}  // namespace

Rows scalar_rows() {
  static constexpr std::string_view arithmetic[] = {"abs",  "atan", "cos", "erf", "exp", "floor", "round", "sin",
                                                    "sqrt", "tanh", "add", "sub", "mul", "max",   "min",   "pow"},
                                    comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"},
                                    bits[] = {"logical_and", "logical_or", "logical_xor"};
  static const std::vector<Row<Rule>> all = [] {
    std::vector<Row<Rule>> rows{{"neg", neg},     {"sign", sign},   {"log", log},
                                {"rsqrt", rsqrt}, {"log1p", log1p}, {"expm1", expm1},
                                {"div", div},     {"rem", rem},     {"logical_not", logical_not_rule},
                                {"shl", shl},     {"shr", shr},     {"select", select_rule},
                                {"cast", cast},   {"fma", fma}};
    for (const std::string_view op : arithmetic) rows.push_back({op, direct});
    for (const std::string_view op : comparisons) rows.push_back({op, comparison});
    for (const std::string_view op : bits) rows.push_back({op, logical_and_or_xor});
    return rows;
  }();
  return all;
}

}  // namespace rlx::coreml
