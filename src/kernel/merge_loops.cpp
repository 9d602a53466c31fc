// Neighbouring loops that every index uses as one.
#include <algorithm>
#include <optional>

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

bool all_use_as_one(Kernel& kernel, int a, int b) {
  const Dim extent_b = kernel.extent(b);
  bool fits = true;
  for (Expr& e : kernel.exprs) for_each_index(e, [&](Index& i) { fits = fits && uses_as_one(i, a, b, extent_b); });
  for (KernelStore& s : kernel.stores) fits = fits && uses_as_one(s.index, a, b, extent_b);
  return fits;
}

/// A variable in the place of both, wherever an index reads them.
int merged(Kernel& kernel, int a, int b) {
  const int merged = kernel.add_variable(kernel.extent(a) * kernel.extent(b));
  const auto replace = [&](const Atom& atom) -> Index {
    if (atom.kind == Atom::Kind::loaded) return Index::loaded(atom.id, atom.extent);
    if (atom.id == a) return 0;
    return atom.id == b ? Index::variable(merged, kernel.extent(merged)) : Index::variable(atom.id, atom.extent);
  };
  for (Expr& e : kernel.exprs) for_each_index(e, [&](Index& i) { i = i.substitute(replace); });
  for (KernelStore& s : kernel.stores) s.index = s.index.substitute(replace);
  return merged;
}

void replace_pair(std::vector<int>& variables, std::size_t at, int by) {
  variables[at] = by;
  variables.erase(variables.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

void try_merge(Kernel& kernel, std::size_t at) {
  const int a = kernel.loops[at], b = kernel.loops[at + 1];
  if (is_reduced(kernel, a) || is_reduced(kernel, b) || !all_use_as_one(kernel, a, b)) return;
  replace_pair(kernel.loops, at, merged(kernel, a, b));
}

/// Where in `variables` `a` stands, followed by `b`; none where either is missing.
std::optional<std::size_t> place_of_pair(const std::vector<int>& variables, int a, int b) {
  const auto place = std::ranges::find(variables, a);
  if (place == variables.end() || place + 1 == variables.end() || place[1] != b) return std::nullopt;
  return static_cast<std::size_t>(place - variables.begin());
}

/// Loops over `a` and `b` that all reductions run through one inside the other.
bool try_merge_reduced(Kernel& kernel, int a, int b) {
  const auto among = [](const std::vector<int>& list, int v) { return std::ranges::find(list, v) != list.end(); };
  if (among(kernel.loops, a) || among(kernel.loops, b)) return false;
  for (const Expr& e : kernel.exprs)
    if ((among(e.variables, a) || among(e.variables, b)) && !place_of_pair(e.variables, a, b)) return false;
  if (!all_use_as_one(kernel, a, b)) return false;
  const int one = merged(kernel, a, b);
  for (Expr& e : kernel.exprs)
    if (const auto place = place_of_pair(e.variables, a, b)) replace_pair(e.variables, *place, one);
  return true;
}

/// The innermost pairs first.
bool merge_a_reduced_pair(Kernel& kernel) {
  for (const Expr& e : kernel.exprs)
    for (std::size_t at = e.variables.size(); at-- > 1;)
      if (try_merge_reduced(kernel, e.variables[at - 1], e.variables[at])) return true;
  return false;
}

}  // namespace

void merge_loops(Kernel& kernel) {
  if (kernel.tile) return;
  for (std::size_t at = kernel.loops.size(); at-- > 0;)
    if (kernel.extent(kernel.loops[at]) == Dim(1)) kernel.loops.erase(kernel.loops.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t at = kernel.loops.size(); at-- > 1;) try_merge(kernel, at - 1);
  while (merge_a_reduced_pair(kernel)) {
  }
}

}  // namespace rlx
