#include "kernel/math/math.h"

#include <array>

#include "kernel/math/math_functions.h"

namespace rlx {
namespace {

using Formula = Term (*)(const Term& x, const Term* y);

template <Term function(const Term&)>
Term unary(const Term& x, const Term*) {
  return function(x);
}
template <Term function(const Term&, const Term&)>
Term binary(const Term& x, const Term* y) {
  return function(x, *y);
}

/// How an op is computed in f32, and in f64; and in f32 on devices without f64, where that differs.
struct Formulas {
  ScalarOp op;
  Formula narrow, wide, without_f64 = nullptr;
};
constexpr std::array<Formulas, 10> formulas{{
    {ScalarOp::exp, unary<math::exp>, unary<math::wide::exp>},
    {ScalarOp::expm1, unary<math::expm1>, unary<math::wide::expm1>},
    {ScalarOp::log, unary<math::log>, unary<math::wide::log>},
    {ScalarOp::log1p, unary<math::log1p>, unary<math::wide::log1p>},
    {ScalarOp::sin, unary<math::sin>, unary<math::wide::sin>, unary<math::without_f64::sin>},
    {ScalarOp::cos, unary<math::cos>, unary<math::wide::cos>, unary<math::without_f64::cos>},
    {ScalarOp::tanh, unary<math::tanh>, unary<math::wide::tanh>},
    {ScalarOp::atan, unary<math::atan>, unary<math::wide::atan>},
    {ScalarOp::erf, unary<math::erf>, unary<math::wide::erf>},
    {ScalarOp::pow, binary<math::pow>, binary<math::wide::pow>, binary<math::without_f64::pow>},
}};

/// The formula of an expression, or null where every processor has the op or no vector form is known.
Formula formula_of(const Expr& e, bool has_f64) {
  if (e.kind != Expr::Kind::scalar || !is_float(e.dtype)) return nullptr;
  for (const Formulas& row : formulas)
    if (row.op == e.op) return e.dtype == f64 ? row.wide : row.without_f64 && !has_f64 ? row.without_f64 : row.narrow;
  return nullptr;
}

/// An f32 with the type of a narrow node without its rounding: the register keeps all bits, as after every other op.
Term of_type(const Term& y, DType narrow) { return neg(y).apply(ScalarOp::neg, {}, narrow); }

ExprId expand(Kernel& kernel, const Expr& e, Formula formula) {
  std::vector<Term> args;
  for (ExprId arg : e.args) {
    const Term x(kernel, arg);
    args.push_back(x.dtype() == register_type(e.dtype) ? x : cast(x, f32));  // narrow floats are f32 in registers: no instruction
  }
  const Term y = formula(args[0], args.size() > 1 ? &args[1] : nullptr);
  return (register_type(e.dtype) == e.dtype ? y : of_type(y, e.dtype)).id();
}

bool is_fma(const Expr& e) { return e.kind == Expr::Kind::scalar && e.op == ScalarOp::fma; }

ExprId expand_fma(Kernel& kernel, const Expr& e, DType wide) {
  if (register_type(e.dtype) == e.dtype) return kernel.fma(e.args[0], e.args[1], e.args[2]);
  const Term y = math::narrow_fma({kernel, e.args[0]}, {kernel, e.args[1]}, {kernel, e.args[2]}, wide);
  return of_type(y, e.dtype).id();
}

}  // namespace

void expand_math(Kernel& kernel, bool has_f64) {
  rewrite(kernel, [&](Expr e) {
    if (is_fma(e)) return expand_fma(kernel, e, has_f64 ? f64 : f32);
    const Formula formula = formula_of(e, has_f64);
    return formula ? expand(kernel, e, formula) : kernel.add(std::move(e));
  });
}

}  // namespace rlx
