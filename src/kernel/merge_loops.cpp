// Neighbouring loops that every index uses as one.
#include "kernel/schedule.h"

namespace rlx {
namespace {

template <class Visit>
void for_each_index(Expr& e, const Visit& visit) {
  visit(e.index);
  for (Guard& guard : e.guards) visit(guard.index);
}

/// True when `index` uses a and b only as a * extent(b) + b.
bool uses_as_one(const Index& index, int a, int b, const Dim& extent_b) {
  Dim coefficient_a = 0, coefficient_b = 0;
  for (const Index::Term& term : index.terms()) {
    if (term.atom->kind == Atom::Kind::variable) {
      if (term.atom->id == a) coefficient_a = term.coefficient;
      if (term.atom->id == b) coefficient_b = term.coefficient;
    } else if (term.atom->numerator) {
      bool inside = false;
      term.atom->numerator->for_each_atom(
          [&](const Atom& atom) { inside = inside || (atom.kind == Atom::Kind::variable && (atom.id == a || atom.id == b)); });
      if (inside) return false;
    }
  }
  return coefficient_a == coefficient_b * extent_b;
}

bool try_merge(Kernel& kernel, std::size_t at) {
  const int a = kernel.loops[at], b = kernel.loops[at + 1];
  const Dim extent_b = kernel.extent(b);
  bool fits = !is_reduced(kernel, a) && !is_reduced(kernel, b);
  for (Expr& e : kernel.exprs) for_each_index(e, [&](Index& i) { fits = fits && uses_as_one(i, a, b, extent_b); });
  for (KernelStore& s : kernel.stores) fits = fits && uses_as_one(s.index, a, b, extent_b);
  if (!fits) return false;
  const int merged = kernel.add_variable(kernel.extent(a) * extent_b);
  const auto replace = [&](const Atom& atom) -> Index {
    if (atom.kind == Atom::Kind::loaded) return Index::loaded(atom.id, atom.extent);
    if (atom.id == a) return 0;
    return atom.id == b ? Index::variable(merged, kernel.extent(merged)) : Index::variable(atom.id, atom.extent);
  };
  for (Expr& e : kernel.exprs) for_each_index(e, [&](Index& i) { i = i.substitute(replace); });
  for (KernelStore& s : kernel.stores) s.index = s.index.substitute(replace);
  kernel.loops[at] = merged;
  kernel.loops.erase(kernel.loops.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  return true;
}

}  // namespace

void merge_loops(Kernel& kernel) {
  if (kernel.tile) return;
  for (std::size_t at = kernel.loops.size(); at-- > 0;)
    if (kernel.extent(kernel.loops[at]) == Dim(1)) kernel.loops.erase(kernel.loops.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t at = kernel.loops.size(); at-- > 1;) try_merge(kernel, at - 1);
}

}  // namespace rlx
