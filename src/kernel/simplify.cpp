#include "kernel/simplify.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/small_float.h"
#include "rlx/array.h"

namespace rlx {
namespace {

struct ParsedRule {
  Pattern left, right;
  int types;
};

/// The rules by the op of their left side.
const std::multimap<ScalarOp, ParsedRule>& rules_by_op() {
  static const std::multimap<ScalarOp, ParsedRule> all = [] {
    std::multimap<ScalarOp, ParsedRule> map;
    for (const Rule& rule : simplify_rules()) {
      const Pattern left = parse_pattern(rule.left);
      map.emplace(left.op, ParsedRule{left, parse_pattern(rule.right), rule.types});
    }
    return map;
  }();
  return all;
}

int types_of(DType t) { return is_float(t) ? for_floats : is_bool(t) ? for_bool : is_integer(t) ? for_integers : 0; }

bool is_number(const Expr& e, double number) {
  if (e.kind != Expr::Kind::constant) return false;
  if (!is_float(e.dtype)) return static_cast<double>(e.integer) == number;
  return e.number == number && std::signbit(e.number) == std::signbit(number);
}

using Letters = std::map<char, ExprId>;

bool matches(const Kernel& kernel, const Pattern& p, ExprId id, Letters& letters) {
  const Expr& e = kernel.expr(id);
  if (p.kind == Pattern::Kind::letter) return letters.emplace(p.letter, id).first->second == id;
  if (p.kind == Pattern::Kind::number) return is_number(e, p.number);
  if (e.kind != Expr::Kind::scalar || e.op != p.op) return false;
  for (std::size_t i = 0; i < p.args.size(); ++i)
    if (!matches(kernel, p.args[i], e.args[i], letters)) return false;
  return true;
}

ExprId build(Kernel& kernel, const Pattern& p, const Letters& letters, DType dtype) {
  if (p.kind == Pattern::Kind::letter) return letters.at(p.letter);
  if (p.kind == Pattern::Kind::number) return kernel.constant(p.number, dtype);
  std::vector<ExprId> args;
  for (const Pattern& arg : p.args) args.push_back(build(kernel, arg, letters, dtype));
  return kernel.scalar(p.op, std::move(args), dtype);
}

/// The value of an op of constants, by the reference. Narrow floats keep more bits in registers than the reference does.
std::optional<Expr> folded(const Kernel& kernel, const Expr& e) {
  if (static_cast<int>(e.op) >= scalar_table_size || register_type(e.dtype) != e.dtype) return std::nullopt;
  std::vector<Array> operands;
  for (ExprId arg : e.args) {
    const Expr& a = kernel.expr(arg);
    if (a.kind != Expr::Kind::constant || register_type(a.dtype) != a.dtype) return std::nullopt;
    operands.emplace_back(a.dtype, std::vector<std::int64_t>{});
    if (is_float(a.dtype)) operands.back().set_double(0, a.number);
    else operands.back().set_int(0, a.integer);
  }
  Array result(e.dtype, {});
  evaluate_scalar(e.op, operands, result);
  Expr constant;
  constant.dtype = e.dtype;
  if (is_float(e.dtype)) constant.number = result.get_double(0);
  else constant.integer = result.get_int(0);
  return constant;
}

/// Division by a power of two is the product with its inverse, to the last bit.
bool divides_by_power_of_two(const Kernel& kernel, const Expr& e) {
  if (e.op != ScalarOp::div || !is_float(e.dtype)) return false;
  const Expr& by = kernel.expr(e.args[1]);
  int exponent = 0;
  return by.kind == Expr::Kind::constant && std::abs(std::frexp(by.number, &exponent)) == 0.5 && std::abs(exponent) < 100;
}

ExprId simplified(Kernel& kernel, Expr e) {
  if (e.kind == Expr::Kind::choose && e.args[0] == e.args[1]) return e.args[0];
  if (e.kind != Expr::Kind::scalar) return kernel.add(std::move(e));
  if (auto constant = folded(kernel, e)) return kernel.add(std::move(*constant));
  if (divides_by_power_of_two(kernel, e)) {
    e.op = ScalarOp::mul;
    e.args[1] = kernel.constant(1 / kernel.expr(e.args[1]).number, kernel.expr(e.args[1]).dtype);
  }
  const DType dtype = e.dtype;
  const ExprId id = kernel.add(std::move(e));
  const auto [begin, end] = rules_by_op().equal_range(kernel.expr(id).op);
  for (auto rule = begin; rule != end; ++rule) {
    Letters letters;
    if (!(rule->second.types & types_of(dtype)) || !matches(kernel, rule->second.left, id, letters)) continue;
    const ExprId result = build(kernel, rule->second.right, letters, dtype);
    if (kernel.expr(result).dtype == dtype) return result;
  }
  return id;
}

/// What only moves 16-bit floats moves their bits: to widen and round them takes longer.
void move_bits(Kernel& kernel) {
  const DType type = kernel.expr(kernel.stores[0].value).dtype;
  if (type != bf16 && type != f16) return;
  const auto is_moved = [&](const Expr& e) {
    return e.dtype == type && (e.kind == Expr::Kind::load || e.kind == Expr::Kind::choose || e.kind == Expr::Kind::constant);
  };
  for (const Expr& e : kernel.exprs) {
    const bool meets_floats =
        is_float(e.dtype) || std::ranges::any_of(e.args, [&](ExprId arg) { return is_float(kernel.expr(arg).dtype); });
    if (meets_floats && !is_moved(e)) return;
  }
  for (KernelBuffer& buffer : kernel.buffers)
    if (buffer.dtype == type) buffer.dtype = u16;
  rewrite(kernel, [&](Expr e) {
    if (e.dtype == type && e.kind == Expr::Kind::constant)
      return kernel.constant(encode(type == bf16 ? bf16_format : f16_format, e.number), u16);
    if (e.dtype == type) e.dtype = u16;
    return kernel.add(std::move(e));
  });
}

/// A store rounds to the type of its buffer, and need not be given what is rounded already.
void leave_rounding_to(KernelStore& store, const Kernel& kernel) {
  const Expr& e = kernel.expr(store.value);
  const DType dtype = kernel.buffers[static_cast<std::size_t>(store.buffer)].dtype;
  const bool rounds =
      e.kind == Expr::Kind::scalar && e.op == ScalarOp::cast && e.dtype == dtype && is_float(dtype) && register_type(dtype) != dtype;
  if (rounds && register_type(kernel.expr(e.args[0]).dtype) == register_type(dtype)) store.value = e.args[0];
}

}  // namespace

void simplify(Kernel& kernel) {
  rewrite(kernel, [&](Expr e) { return simplified(kernel, std::move(e)); });
  for (KernelStore& store : kernel.stores) leave_rounding_to(store, kernel);
  move_bits(kernel);
}

}  // namespace rlx
