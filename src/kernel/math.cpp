#include "kernel/math.h"

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

/// Copies the expressions of a kernel in their order, with new numbers.
class Expansion {
 public:
  explicit Expansion(Kernel& kernel) : kernel_(kernel), old_(std::move(kernel.exprs)) {}

  void run() {
    Kernel fresh;
    fresh.buffers = std::move(kernel_.buffers);
    fresh.variables = std::move(kernel_.variables);
    fresh.loops = std::move(kernel_.loops);
    fresh.stores = std::move(kernel_.stores);
    fresh.symbols = std::move(kernel_.symbols);
    fresh.tile = kernel_.tile;
    kernel_ = std::move(fresh);
    for (Expr& e : old_) renumbered_.push_back(copy(std::move(e)));
    for (KernelStore& store : kernel_.stores) {
      store.value = now(store.value);
      store.index = renumber(store.index);
    }
  }

 private:
  ExprId now(ExprId id) const { return renumbered_[static_cast<std::size_t>(id)]; }
  Index renumber(const Index& index) const {
    return index.substitute([&](const Atom& atom) {
      return atom.kind == Atom::Kind::loaded ? Index::loaded(now(atom.id), atom.extent) : Index::variable(atom.id, atom.extent);
    });
  }
  ExprId copy(Expr e) {
    for (ExprId& arg : e.args) arg = now(arg);
    if (expands(e)) return expand(e);
    e.index = renumber(e.index);
    for (Guard& guard : e.guards) guard.index = renumber(guard.index);
    return kernel_.add(std::move(e));
  }
  ExprId expand(const Expr& e) {
    std::vector<Term> args;
    for (ExprId arg : e.args) {
      const Term x(kernel_, arg);
      args.push_back(x.dtype() == f32 ? x : cast(x, f32));  // narrow floats are f32 in registers: no instruction
    }
    const Term y = formula_of(e.op)(args[0], args.size() > 1 ? &args[1] : nullptr);
    if (e.dtype == f32) return y.id();
    // The type of the node without its rounding: the register keeps all bits, as after every other op.
    return neg(y).apply(ScalarOp::neg, {}, e.dtype).id();
  }

  Kernel& kernel_;
  std::vector<Expr> old_;
  std::vector<ExprId> renumbered_;
};

}  // namespace

void expand_math(Kernel& kernel) {
  for (const Expr& e : kernel.exprs)
    if (expands(e)) return Expansion(kernel).run();
}

}  // namespace rlx
