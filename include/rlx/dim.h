#pragma once
#include <compare>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rlx {

/// Values of the symbols at run time.
using Bindings = std::map<std::string, std::int64_t, std::less<>>;

/// A size: an integer, or a polynomial with integer coefficients over named symbols. A symbol is at least 1 and at most its bound.
/// Arithmetic is exact; a coefficient that leaves 64 bits throws Error.
class Dim {
 public:
  struct Symbol {
    std::string name;
    std::int64_t bound;
  };
  using Monomial = std::vector<std::shared_ptr<const Symbol>>;  // sorted by name; empty = the constant term
  struct Term {
    Monomial symbols;
    std::int64_t coefficient;
  };

  Dim() = default;
  /// Throws Error for a number beyond 64 signed bits.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Dim(T value) : constant_(checked(value)) {}  // NOLINT(google-explicit-constructor): an integer is a size

  /// A new symbol with values 1..bound. Throws Error when the name is no identifier or the bound is below 1.
  static Dim symbol(std::string name, std::int64_t bound);

  bool is_static() const { return terms_ == nullptr; }
  /// The value of a static size; throws Error for a symbolic one.
  std::int64_t value() const;
  /// The largest and smallest values that the bounds of the symbols allow (interval arithmetic: exact for sums of products).
  std::int64_t upper() const;
  std::int64_t lower() const;
  /// The value under `bindings`; throws Error for a symbol that is missing or out of its range.
  std::int64_t evaluate(const Bindings& bindings) const;
  /// True when the size is >= 0 for every value of the symbols, as far as interval arithmetic can tell.
  bool known_non_negative() const;

  std::vector<Term> terms() const;
  void collect_symbols(std::map<std::string, std::int64_t>& into) const;
  std::string to_string() const;
  std::size_t hash() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  Dim operator-() const { return Dim(0) - *this; }
  Dim& operator+=(const Dim& b) { return *this = *this + b; }
  Dim& operator*=(const Dim& b) { return *this = *this * b; }

  /// a / b when the division leaves no remainder as polynomials; nothing otherwise.
  static std::optional<Dim> exact_div(const Dim& a, const Dim& b);

 private:
  template <class T>
  static std::int64_t checked(T value) {
    if (!std::in_range<std::int64_t>(value)) too_large();
    return static_cast<std::int64_t>(value);
  }
  [[noreturn]] static void too_large();
  static Dim from_terms(std::vector<Term> terms);

  std::int64_t constant_ = 0;
  std::shared_ptr<const std::vector<Term>> terms_;  // null for a static size
};

using Dims = std::vector<Dim>;

/// The product of all sizes.
Dim product(const Dims& dims);
std::string to_string(const Dims& dims);

}  // namespace rlx
