#include "ir/index.h"

#include <algorithm>

#include "base/hash.h"

namespace rlx {
namespace {

std::size_t hash_atom(const Atom& atom) {
  std::size_t h = hash_mix(static_cast<std::size_t>(atom.kind), static_cast<std::size_t>(atom.id));
  if (atom.numerator) h = hash_mix(hash_mix(h, atom.numerator->hash()), atom.denominator.hash());
  return h;
}

/// A total order of atoms: by kind and number, quotients and remainders by their printed form.
int compare(const AtomRef& a, const AtomRef& b) {
  if (a == b) return 0;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->id != b->id) return a->id < b->id ? -1 : 1;
  if (!a->numerator) return 0;
  if (int order = a->numerator->to_string().compare(b->numerator->to_string())) return order;
  return a->denominator.to_string().compare(b->denominator.to_string());
}

struct Division {
  Index multiple;  // of the divisor
  Index rest;
};

/// a = multiple * b + rest, taking out every term whose coefficient b divides.
Division divide_terms(const Index& a, const Dim& b) {
  Division result;
  if (auto q = Dim::exact_div(a.constant(), b)) {
    result.multiple = *q;
  } else if (a.constant().is_static() && b.is_static()) {
    const std::int64_t constant = a.constant().value(), divisor = b.value();
    const std::int64_t floored = constant / divisor - (constant % divisor < 0 ? 1 : 0);
    result.multiple = Dim(floored);
    result.rest = Dim(constant - floored * divisor);
  } else {
    result.rest = a.constant();
  }
  for (const Index::Term& term : a.terms()) {
    if (auto q = Dim::exact_div(term.coefficient, b)) result.multiple = result.multiple + Index::of_term(term.atom, *q);
    else result.rest = result.rest + Index::of_term(term.atom, term.coefficient);
  }
  return result;
}

/// An atom takes 0..extent-1, so the extreme values come from coefficient signs; nothing when a sign is unknown.
std::optional<Dim> extreme(const Index& index, bool upper) {
  Dim total = index.constant();
  for (const Index::Term& term : index.terms()) {
    const bool positive = term.coefficient.known_non_negative();
    if (!positive && !(-term.coefficient).known_non_negative()) return std::nullopt;
    if (positive == upper) total += term.coefficient * (term.atom->extent - Dim(1));
  }
  return total;
}

/// How many values numerator / denominator has: 0 is the least.
Dim quotient_extent(const Index& numerator, const Dim& denominator) {
  const auto top = numerator.upper();
  if (!top) return std::int64_t{1} << 40;
  if (auto whole = Dim::exact_div(*top + Dim(1), denominator); whole && (*whole - Dim(1)).known_non_negative()) return *whole;
  if (!top->is_static() || !denominator.is_static()) return *top + Dim(1);
  return std::max<std::int64_t>(top->value(), 0) / denominator.value() + 1;
}

Index make_division(Atom::Kind kind, const Index& numerator, const Dim& denominator) {
  Dim extent = kind == Atom::Kind::quotient ? quotient_extent(numerator, denominator) : denominator;
  return Index::of_term(std::make_shared<const Atom>(Atom{kind, 0, extent, std::make_shared<const Index>(numerator), denominator}), 1);
}

}  // namespace

Index Index::variable(int id, Dim extent) {
  if (extent == Dim(1)) return 0;
  return of_term(std::make_shared<const Atom>(Atom{Atom::Kind::variable, id, std::move(extent), nullptr, {}}), 1);
}

Index Index::loaded(int id, Dim extent) {
  return of_term(std::make_shared<const Atom>(Atom{Atom::Kind::loaded, id, std::move(extent), nullptr, {}}), 1);
}

Index Index::of_term(AtomRef atom, Dim coefficient) {
  Index result;
  if (!(coefficient == Dim(0))) result.terms_.push_back({std::move(atom), std::move(coefficient)});
  return result;
}

std::optional<Dim> Index::lower() const { return extreme(*this, false); }
std::optional<Dim> Index::upper() const { return extreme(*this, true); }

bool Index::known_non_negative() const {
  auto low = lower();
  return low && low->known_non_negative();
}

bool Index::known_below(const Dim& limit) const {
  auto high = upper();
  return high && (limit - Dim(1) - *high).known_non_negative();
}

bool same_atom(const AtomRef& a, const AtomRef& b) { return compare(a, b) == 0; }

/// x/b*b + x%b is x again: what unflatten took apart, flatten puts together, whatever the sizes.
Index Index::with_divisions_joined() const {
  for (const Term& rest : terms_) {
    if (rest.atom->kind != Atom::Kind::remainder) continue;
    const Dim whole = rest.coefficient * rest.atom->denominator;
    for (const Term& multiple : terms_) {
      const Atom& atom = *multiple.atom;
      if (atom.kind != Atom::Kind::quotient || !(multiple.coefficient == whole) || !(atom.denominator == rest.atom->denominator) ||
          !(*atom.numerator == *rest.atom->numerator))
        continue;
      Index others(constant_);
      for (const Term& term : terms_)
        if (&term != &rest && &term != &multiple) others.terms_.push_back(term);
      return others + *atom.numerator * rest.coefficient;
    }
  }
  return *this;
}

Index operator+(const Index& a, const Index& b) {
  Index result(a.constant_ + b.constant_);
  auto x = a.terms_.begin(), y = b.terms_.begin();
  while (x != a.terms_.end() || y != b.terms_.end()) {
    const int order = x == a.terms_.end() ? 1 : y == b.terms_.end() ? -1 : compare(x->atom, y->atom);
    if (order < 0) {
      result.terms_.push_back(*x++);
    } else if (order > 0) {
      result.terms_.push_back(*y++);
    } else {
      Dim sum = x->coefficient + y->coefficient;
      if (!(sum == Dim(0))) result.terms_.push_back({x->atom, sum});
      ++x, ++y;
    }
  }
  const auto is_remainder = [](const Index::Term& term) { return term.atom->kind == Atom::Kind::remainder; };
  return std::any_of(result.terms_.begin(), result.terms_.end(), is_remainder) ? result.with_divisions_joined() : result;
}

Index operator*(const Index& a, const Dim& b) {
  if (b == Dim(0)) return 0;
  Index result(a.constant_ * b);
  for (const Index::Term& term : a.terms_) result.terms_.push_back({term.atom, term.coefficient * b});
  return result;
}

Index operator-(const Index& a, const Index& b) { return a + b * Dim(-1); }

bool operator==(const Index& a, const Index& b) {
  if (!(a.constant_ == b.constant_) || a.terms_.size() != b.terms_.size()) return false;
  for (std::size_t i = 0; i < a.terms_.size(); ++i)
    if (!same_atom(a.terms_[i].atom, b.terms_[i].atom) || !(a.terms_[i].coefficient == b.terms_[i].coefficient)) return false;
  return true;
}

Index Index::quotient(const Index& a, const Dim& b) {
  if (b == Dim(1)) return a;
  if (b == Dim(0)) return 0;  // an axis of size 0 has no element that could ask
  auto [multiple, rest] = divide_terms(a, b);
  if (rest.known_non_negative() && rest.known_below(b)) return multiple;
  // A remainder that may be negative must stay with its multiple: C division truncates where floor is meant.
  return rest.known_non_negative() ? multiple + make_division(Atom::Kind::quotient, rest, b) : make_division(Atom::Kind::quotient, a, b);
}

Index Index::remainder(const Index& a, const Dim& b) {
  if (b == Dim(1) || b == Dim(0)) return 0;
  auto [multiple, rest] = divide_terms(a, b);
  if (!rest.known_non_negative()) return make_division(Atom::Kind::remainder, a, b);
  return rest.known_below(b) ? rest : make_division(Atom::Kind::remainder, rest, b);
}

std::string Index::to_string() const {
  std::string text = constant_.to_string();
  for (const Term& term : terms_) {
    text += " + (" + term.coefficient.to_string() + ")*";
    const Atom& atom = *term.atom;
    switch (atom.kind) {
      case Atom::Kind::variable: text += "i" + std::to_string(atom.id); break;
      case Atom::Kind::loaded: text += "v" + std::to_string(atom.id); break;
      case Atom::Kind::quotient: text += "((" + atom.numerator->to_string() + ") / (" + atom.denominator.to_string() + "))"; break;
      case Atom::Kind::remainder: text += "((" + atom.numerator->to_string() + ") % (" + atom.denominator.to_string() + "))"; break;
    }
  }
  return text;
}

std::size_t Index::hash() const {
  std::size_t h = constant_.hash();
  for (const Term& term : terms_) h = hash_mix(hash_mix(h, hash_atom(*term.atom)), term.coefficient.hash());
  return h;
}

Index flatten(const std::vector<Index>& at, const Dims& shape) {
  Index flat = 0;
  for (std::size_t i = 0; i < at.size(); ++i) flat = flat * shape[i] + at[i];
  return flat;
}

std::vector<Index> unflatten(const Index& flat, const Dims& shape) {
  std::vector<Index> at(shape.size());
  Index rest = flat;
  for (std::size_t i = shape.size(); i-- > 0;) {
    at[i] = i == 0 ? rest : Index::remainder(rest, shape[i]);
    if (i > 0) rest = Index::quotient(rest, shape[i]);
  }
  // Sizes of 1 have only one index, whatever the arithmetic could prove.
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == Dim(1)) at[i] = 0;
  return at;
}

}  // namespace rlx
