#include "kernel/math.h"

#include <limits>

#include "kernel/math_functions.h"

namespace rlx {
namespace {

using Formula = Term (*)(const Term& x, const Term* y);

template <Term function(const Term&)>
Term unary(const Term& x, const Term*) {
  return function(x);
}
Term power(const Term& x, const Term* y) { return math::pow(x, *y); }

/// The formula of an op, or null for ops that every processor has.
Formula formula_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp: return unary<math::exp>;
    case ScalarOp::expm1: return unary<math::expm1>;
    case ScalarOp::log: return unary<math::log>;
    case ScalarOp::log1p: return unary<math::log1p>;
    case ScalarOp::sin: return unary<math::sin>;
    case ScalarOp::cos: return unary<math::cos>;
    case ScalarOp::tanh: return unary<math::tanh>;
    case ScalarOp::atan: return unary<math::atan>;
    case ScalarOp::erf: return unary<math::erf>;
    case ScalarOp::pow: return power;
    default: return nullptr;
  }
}

bool expands(const Expr& e) { return e.kind == Expr::Kind::scalar && register_type(e.dtype) == f32 && formula_of(e.op); }

/// The C library takes these apart by their bits and gives neither the value of a subnormal operand nor that of zero where the
/// processor takes subnormal numbers for zeros.
bool needs_zero_for_subnormal(const Expr& e) {
  return e.kind == Expr::Kind::scalar && e.dtype == f64 && (e.op == ScalarOp::log || e.op == ScalarOp::pow);
}

Term zero_for_subnormal(const Term& x) { return select(abs(x) < std::numeric_limits<double>::min(), x * 0, x); }

ExprId expand(Kernel& kernel, const Expr& e) {
  std::vector<Term> args;
  for (ExprId arg : e.args) {
    const Term x(kernel, arg);
    args.push_back(x.dtype() == f32 ? x : cast(x, f32));  // narrow floats are f32 in registers: no instruction
  }
  const Term y = formula_of(e.op)(args[0], args.size() > 1 ? &args[1] : nullptr);
  if (e.dtype == f32) return y.id();
  // The type of the node without its rounding: the register keeps all bits, as after every other op.
  return neg(y).apply(ScalarOp::neg, {}, e.dtype).id();
}

}  // namespace

void expand_math(Kernel& kernel) {
  rewrite(kernel, [&](Expr e) {
    if (expands(e)) return expand(kernel, e);
    if (needs_zero_for_subnormal(e))
      for (ExprId& arg : e.args) arg = zero_for_subnormal(Term(kernel, arg)).id();
    return kernel.add(std::move(e));
  });
}

}  // namespace rlx
