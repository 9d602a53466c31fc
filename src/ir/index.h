#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rlx/dim.h"
#include "rlx/type.h"

namespace rlx {

class Index;

/// What an index is made of besides numbers: a loop variable, a quotient or remainder that could not be taken apart, or an integer
/// read from memory. Its values lie in 0..extent-1.
struct Atom {
  enum class Kind : std::uint8_t { variable, quotient, remainder, loaded };
  Kind kind;
  int id = 0;  // variable or loaded: who it is
  Dim extent;
  std::shared_ptr<const Index> numerator;  // quotient, remainder
  Dim denominator;
};
using AtomRef = std::shared_ptr<const Atom>;

/// An integer expression constant + sum of coefficient * atom, in a canonical form: equal expressions are equal structures.
/// Coefficients are sizes, so strides may be symbolic.
class Index {
 public:
  struct Term {
    AtomRef atom;
    Dim coefficient;
  };

  Index(Dim constant = 0) : constant_(std::move(constant)) {}  // NOLINT(google-explicit-constructor): a number is an index
  Index(int constant) : constant_(constant) {}                 // NOLINT(google-explicit-constructor)
  static Index variable(int id, Dim extent);
  static Index loaded(int id, Dim extent);
  static Index of_term(AtomRef atom, Dim coefficient);

  const Dim& constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }
  /// Bounds over all values of the atoms; exact for independent atoms with coefficients of known sign, else nothing is known.
  std::optional<Dim> lower() const;
  std::optional<Dim> upper() const;
  bool known_non_negative() const;
  /// True when the value is below `limit` for sure.
  bool known_below(const Dim& limit) const;
  std::string to_string() const;
  std::size_t hash() const;

  friend Index operator+(const Index& a, const Index& b);
  friend Index operator-(const Index& a, const Index& b);
  friend Index operator*(const Index& a, const Dim& b);
  friend bool operator==(const Index& a, const Index& b);

  /// floor(a / b) and a mod b for a >= 0 and b >= 1. Multiples of b are taken out, and what stays is dropped when it lies in 0..b-1.
  static Index quotient(const Index& a, const Dim& b);
  static Index remainder(const Index& a, const Dim& b);

  /// The expression with every variable replaced by `with(id)`; quotients and remainders are simplified again.
  template <class Function>
  Index substitute(const Function& with) const;
  /// Calls `visit(atom)` for every atom, also inside quotients and remainders.
  template <class Function>
  void for_each_atom(const Function& visit) const;

 private:
  Index with_divisions_joined() const;

  Dim constant_;
  std::vector<Term> terms_;  // sorted by atom
};

bool same_atom(const AtomRef& a, const AtomRef& b);

/// A condition on indices: all bounds must hold.
struct Guard {
  enum class Kind : std::uint8_t { non_negative, zero };
  Kind kind;
  Index index;
  friend bool operator==(const Guard&, const Guard&) = default;
};

/// One way in which a structure op reads its operand: where every guard holds, the result element is operand[index]; an
/// operand of `fill_value` means the fill, of `index_value` the number index[0] itself. The first source whose guards hold counts; the last
/// has none.
struct Source {
  static constexpr int fill_value = -1, index_value = -2;
  std::vector<Guard> guards;
  int operand = 0;
  std::vector<Index> index;
  double fill = 0;
};

/// Row-major position of `at` in `shape`, and back.
Index flatten(const std::vector<Index>& at, const Dims& shape);
std::vector<Index> unflatten(const Index& flat, const Dims& shape);

template <class Function>
Index Index::substitute(const Function& with) const {
  Index result(constant_);
  for (const Term& term : terms_) {
    Index part;
    switch (term.atom->kind) {
      case Atom::Kind::variable: part = with(*term.atom); break;
      case Atom::Kind::loaded: part = with(*term.atom); break;
      case Atom::Kind::quotient: part = quotient(term.atom->numerator->substitute(with), term.atom->denominator); break;
      case Atom::Kind::remainder: part = remainder(term.atom->numerator->substitute(with), term.atom->denominator); break;
    }
    result = result + part * term.coefficient;
  }
  return result;
}

template <class Function>
void Index::for_each_atom(const Function& visit) const {
  for (const Term& term : terms_) {
    visit(*term.atom);
    if (term.atom->numerator) term.atom->numerator->for_each_atom(visit);
  }
}

}  // namespace rlx
