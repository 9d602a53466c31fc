#include "lowering/one_row.h"

#include <algorithm>

namespace rlx {

std::optional<std::pair<Kernel, SizeRange>> of_one_row(const Kernel& kernel) {
  constexpr std::int64_t few = 8;
  const auto is_product = [&](const Expr& e) {
    if (e.kind != Expr::Kind::reduce || e.reduce != ReduceKind::sum) return false;
    const Expr& body = kernel.expr(e.args[0]);
    return body.kind == Expr::Kind::scalar && body.op == ScalarOp::mul;
  };
  if (kernel.tile || std::ranges::none_of(kernel.exprs, is_product)) return std::nullopt;
  Kernel one = kernel;
  Dim rows = 1;
  std::erase_if(one.loops, [&](int loop) {
    if (!kernel.extent(loop).is_static()) rows *= kernel.extent(loop);
    return !kernel.extent(loop).is_static();
  });
  if (rows.is_static() || rows.lower() != 1 || rows.upper() < few) return std::nullopt;
  const auto is_left = [&](int variable) { return std::ranges::find(one.loops, variable) != one.loops.end(); };
  const auto is_loop = [&](int variable) { return std::ranges::find(kernel.loops, variable) != kernel.loops.end(); };
  const auto at_first = [&](Index& index) {
    index = index.substitute([&](const Atom& atom) {
      if (atom.kind == Atom::Kind::loaded) return Index::loaded(atom.id, atom.extent);
      return is_loop(atom.id) && !is_left(atom.id) ? Index(0) : Index::variable(atom.id, atom.extent);
    });
  };
  for (Expr& e : one.exprs) {
    at_first(e.index);
    for (Guard& guard : e.guards) at_first(guard.index);
  }
  for (KernelStore& store : one.stores) at_first(store.index);
  return std::pair{std::move(one), SizeRange{rows, 1, 1}};
}

}  // namespace rlx
