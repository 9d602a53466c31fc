#pragma once
#include <initializer_list>
#include <optional>

#include "kernel/kernel.h"

namespace rlx {

/// An expression of a kernel that is written like the number it stands for: operators add the expression of their result.
/// Operands have equal register types; a plain number takes the type of the term beside it.
class Term {
 public:
  Term(Kernel& kernel, ExprId id) : kernel_(&kernel), id_(id) {}
  ExprId id() const { return id_; }
  DType dtype() const { return kernel_->expr(id_).dtype; }
  Kernel& kernel() const { return *kernel_; }
  Term constant(double number) const { return {*kernel_, kernel_->constant(number, dtype())}; }
  /// A constant of this integer type by all of its bits, of which `constant` holds 53.
  Term integer(std::uint64_t bits) const {
    Expr e;
    e.dtype = dtype();
    e.integer = static_cast<std::int64_t>(bits);
    return {*kernel_, kernel_->add(std::move(e))};
  }
  Term apply(ScalarOp op, std::initializer_list<Term> more, DType result) const {
    std::vector<ExprId> args{id_};
    for (const Term& term : more) args.push_back(term.id_);
    return {*kernel_, kernel_->scalar(op, std::move(args), result)};
  }

 private:
  Kernel* kernel_;
  ExprId id_;
};

/// A term, or a number that becomes a constant of the type at hand.
class TermOrNumber {
 public:
  TermOrNumber(const Term& term) : term_(term) {}   // NOLINT(google-explicit-constructor): formulas mix both
  TermOrNumber(double number) : number_(number) {}  // NOLINT(google-explicit-constructor)
  Term beside(const Term& other) const { return term_ ? *term_ : other.constant(number_); }

 private:
  std::optional<Term> term_;
  double number_ = 0;
};

inline Term operator+(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::add, {b.beside(a)}, a.dtype()); }
inline Term operator-(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::sub, {b.beside(a)}, a.dtype()); }
inline Term operator*(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::mul, {b.beside(a)}, a.dtype()); }
inline Term operator/(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::div, {b.beside(a)}, a.dtype()); }
inline Term operator-(double a, const Term& b) { return b.constant(a) - b; }
inline Term operator/(double a, const Term& b) { return b.constant(a) / b; }
inline Term operator<<(const Term& a, int bits) { return a.apply(ScalarOp::shl, {a.constant(bits)}, a.dtype()); }
inline Term operator>>(const Term& a, int bits) { return a.apply(ScalarOp::shr, {a.constant(bits)}, a.dtype()); }
inline Term operator<<(const Term& a, const Term& bits) { return a.apply(ScalarOp::shl, {bits}, a.dtype()); }
inline Term operator>>(const Term& a, const Term& bits) { return a.apply(ScalarOp::shr, {bits}, a.dtype()); }
inline Term operator&(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::logical_and, {b.beside(a)}, a.dtype()); }
inline Term operator|(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::logical_or, {b.beside(a)}, a.dtype()); }
inline Term operator^(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::logical_xor, {b.beside(a)}, a.dtype()); }
inline Term operator==(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::eq, {b.beside(a)}, boolean); }
inline Term operator==(const Term& a, const Term& b) { return a.apply(ScalarOp::eq, {b}, boolean); }
inline Term operator!=(const Term& a, const Term& b) { return a.apply(ScalarOp::ne, {b}, boolean); }
/// Only NaN differs from itself.
inline Term is_nan(const Term& a) { return a.apply(ScalarOp::ne, {a}, boolean); }
inline Term operator!=(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::ne, {b.beside(a)}, boolean); }
inline Term operator<(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::lt, {b.beside(a)}, boolean); }
inline Term operator<=(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::le, {b.beside(a)}, boolean); }
inline Term operator>(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::gt, {b.beside(a)}, boolean); }
inline Term operator>=(const Term& a, const TermOrNumber& b) { return a.apply(ScalarOp::ge, {b.beside(a)}, boolean); }

inline Term cast(const Term& x, DType to) { return x.apply(ScalarOp::cast, {}, to); }
inline Term bitcast(const Term& x, DType to) { return x.apply(ScalarOp::bitcast, {}, to); }
inline Term abs(const Term& x) { return x.apply(ScalarOp::abs, {}, x.dtype()); }
inline Term operator!(const Term& x) { return x.apply(ScalarOp::logical_not, {}, x.dtype()); }
inline Term neg(const Term& x) { return x.apply(ScalarOp::neg, {}, x.dtype()); }
inline Term floor(const Term& x) { return x.apply(ScalarOp::floor, {}, x.dtype()); }

/// a * b + c, rounded once.
inline Term fma(const Term& a, const TermOrNumber& b, const TermOrNumber& c) {
  return {a.kernel(), a.kernel().fma(a.id(), b.beside(a).id(), c.beside(a).id())};
}
/// `a` where the condition holds, else `b`.
inline Term select(const Term& condition, const Term& a, const TermOrNumber& b) {
  return condition.apply(ScalarOp::select, {a, b.beside(a)}, a.dtype());
}
inline Term select(const Term& condition, double a, const Term& b) {
  return condition.apply(ScalarOp::select, {b.constant(a), b}, b.dtype());
}

/// coefficients[0] + coefficients[1] x + ..., by Horner's rule.
inline Term polynomial(const Term& x, std::initializer_list<double> coefficients) {
  auto it = std::rbegin(coefficients);
  Term sum = x.constant(*it++);
  for (; it != std::rend(coefficients); ++it) sum = fma(sum, x, *it);
  return sum;
}

}  // namespace rlx
