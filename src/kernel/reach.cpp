#include "kernel/reach.h"

#include <algorithm>
#include <cmath>

namespace rlx {
namespace {

/// Of all of a size's terms, so that it does not matter in which order they are added.
double reach_of(const Dim& size) {
  double total = 0;
  for (const Dim::Term& term : size.terms()) {
    double product = std::fabs(static_cast<double>(term.coefficient));
    for (const auto& symbol : term.symbols) product *= static_cast<double>(symbol->bound);
    total += product;
  }
  return total;
}

/// The largest of what was noted.
class Reach {
 public:
  double all() const { return all_; }
  void note(double number) { all_ = std::max(all_, number); }
  void note(const Index& index) { note(of(index)); }
  void note(const Kernel& kernel) {
    note_counts(kernel, kernel.loops);
    for (const Expr& e : kernel.exprs) note(kernel, e);
    for (const KernelStore& store : kernel.stores) note(store.index);
  }

 private:
  void note(const Kernel& kernel, const Expr& e) {
    if (e.kind == Expr::Kind::load) note(of(e.index) + reach_of(e.last));  // under a guard it is moved inside
    if (e.kind == Expr::Kind::position) note(e.index);
    if (e.kind == Expr::Kind::reduce) note_counts(kernel, e.variables);
    for (const Guard& guard : e.guards) note(guard.index);
  }
  /// Loops may be counted together, and one of them may have no place.
  void note_counts(const Kernel& kernel, const std::vector<int>& variables) {
    double together = 1;
    for (const int v : variables) together *= std::max(reach_of(kernel.extent(v)), 1.0);
    note(together);
  }
  double of(const Index& index) {
    double total = reach_of(index.constant());
    for (const Index::Term& term : index.terms()) total += reach_of(term.coefficient) * of(*term.atom);
    return total;
  }
  double of(const Atom& atom) {
    if (!atom.numerator) return reach_of(atom.extent);
    const double numerator = of(*atom.numerator), denominator = reach_of(atom.denominator);
    note(numerator), note(denominator);
    if (atom.kind == Atom::Kind::remainder) return denominator;
    return atom.numerator->known_non_negative() ? std::min(reach_of(atom.extent), numerator) : numerator;
  }

  double all_ = 0;
};

}  // namespace

double reach(const Index& index) {
  Reach reach;
  reach.note(index);
  return reach.all();
}

double reach(const Kernel& kernel) {
  Reach reach;
  reach.note(kernel);
  return reach.all();
}

}  // namespace rlx
