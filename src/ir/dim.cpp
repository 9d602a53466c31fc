#include "rlx/dim.h"

#include <algorithm>
#include <cctype>

#include "base/checked.h"
#include "base/hash.h"
#include "ir/symbols.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::string_view too_large_text = "a size leaves the range of 64-bit integers";

std::int64_t exact(std::optional<std::int64_t> result) {
  if (!result) fail("{}", too_large_text);
  return *result;
}

// Products of sums grow exponentially with their number; no tensor needs sizes like these.
constexpr std::size_t most_products = 4096, highest_degree = 64;

std::size_t degree(const std::vector<Dim::Term>& terms) { return terms.empty() ? 0 : terms.front().symbols.size(); }  // highest first

bool monomial_less(const Dim::Monomial& a, const Dim::Monomial& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i]->name != b[i]->name) return a[i]->name < b[i]->name;
  return false;
}

bool monomial_equal(const Dim::Monomial& a, const Dim::Monomial& b) { return !monomial_less(a, b) && !monomial_less(b, a); }

/// a / b as products of symbols, when b divides a.
std::optional<Dim::Monomial> monomial_div(const Dim::Monomial& a, const Dim::Monomial& b) {
  Dim::Monomial rest = a;
  for (const auto& symbol : b) {
    auto it = std::find_if(rest.begin(), rest.end(), [&](const auto& s) { return s->name == symbol->name; });
    if (it == rest.end()) return std::nullopt;
    rest.erase(it);
  }
  return rest;
}

}  // namespace

void Dim::too_large() { fail("{}", too_large_text); }

Dim Dim::symbol(std::string name, std::int64_t bound) {
  bool identifier = !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_');
  for (char c : name) identifier = identifier && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (!identifier) fail("symbol '{}': a name is letters, digits and underscores and does not start with a digit", name);
  if (bound < 1) fail("symbol '{}': bound {} is below 1", name, bound);
  return from_terms({{{std::make_shared<const Symbol>(Symbol{std::move(name), bound})}, 1}});
}

Dim Dim::from_terms(std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return monomial_less(a.symbols, b.symbols); });
  std::vector<Term> merged;
  for (Term& term : terms) {
    if (!merged.empty() && monomial_equal(merged.back().symbols, term.symbols))
      merged.back().coefficient = exact(checked_add(merged.back().coefficient, term.coefficient));
    else merged.push_back(std::move(term));
  }
  std::erase_if(merged, [](const Term& t) { return t.coefficient == 0; });
  Dim result;
  if (merged.empty()) return result;
  if (merged.size() == 1 && merged[0].symbols.empty()) return Dim(merged[0].coefficient);
  result.terms_ = std::make_shared<const std::vector<Term>>(std::move(merged));
  return result;
}

std::vector<Dim::Term> Dim::terms() const {
  if (terms_) return *terms_;
  if (constant_ == 0) return {};
  return {{{}, constant_}};
}

std::int64_t Dim::value() const {
  if (!is_static()) fail("rlx.Dim: size {} is symbolic where a fixed size is needed", to_string());
  return constant_;
}

namespace {
std::int64_t bound_of(const std::vector<Dim::Term>& terms, bool upper) {
  std::int64_t total = 0;
  for (const Dim::Term& term : terms) {
    std::int64_t product = term.coefficient;
    const bool use_bound = (term.coefficient > 0) == upper;
    if (use_bound)
      for (const auto& symbol : term.symbols) product = exact(checked_mul(product, symbol->bound));
    total = exact(checked_add(total, product));
  }
  return total;
}
}  // namespace

std::int64_t Dim::upper() const { return is_static() ? constant_ : bound_of(*terms_, true); }
std::int64_t Dim::lower() const { return is_static() ? constant_ : bound_of(*terms_, false); }
bool Dim::known_non_negative() const {
  if (is_static()) return constant_ >= 0;
  std::int64_t smallest = 0;  // every symbol is at least 1, so terms with positive coefficients give at least that
  bool all_positive = true;
  for (const Term& term : *terms_) {
    smallest = exact(checked_add(smallest, term.coefficient));
    all_positive = all_positive && (term.coefficient >= 0 || term.symbols.empty());
  }
  return (all_positive && smallest >= 0) || lower() >= 0;
}

std::int64_t Dim::evaluate(const Bindings& bindings) const {
  if (is_static()) return constant_;
  std::int64_t total = 0;
  for (const Term& term : *terms_) {
    std::int64_t product = term.coefficient;
    for (const auto& symbol : term.symbols) {
      const auto value = value_of_symbol(symbol->name, bindings);
      if (!value) fail("symbol '{}' has no value", symbol->name);
      if (*value < 1 || *value > symbol->bound) fail("symbol '{}' is {} (allowed: 1..{})", symbol->name, *value, symbol->bound);
      product = exact(checked_mul(product, *value));
    }
    total = exact(checked_add(total, product));
  }
  return total;
}

void Dim::collect_symbols(std::map<std::string, std::int64_t>& into) const {
  if (is_static()) return;
  for (const Term& term : *terms_)
    for (const auto& symbol : term.symbols) {
      auto [it, added] = into.emplace(symbol->name, symbol->bound);
      if (!added && it->second != symbol->bound) fail("symbol '{}' has two bounds: {} and {}", symbol->name, it->second, symbol->bound);
    }
}

std::string Dim::to_string() const {
  if (is_static()) return std::to_string(constant_);
  std::string text;
  for (const Term& term : *terms_) {
    std::int64_t c = term.coefficient;
    if (c < 0) text += "-";
    else if (!text.empty()) text += "+";
    const std::uint64_t magnitude = c < 0 ? 0 - static_cast<std::uint64_t>(c) : static_cast<std::uint64_t>(c);
    std::string factors;
    if (magnitude != 1 || term.symbols.empty()) factors = std::to_string(magnitude);
    for (const auto& symbol : term.symbols) factors += (factors.empty() ? "" : "*") + symbol->name;
    text += factors;
  }
  return text;
}

std::size_t Dim::hash() const {
  if (is_static()) return hash_mix(1, static_cast<std::size_t>(constant_));
  std::size_t h = 2;
  for (const Term& term : *terms_) {
    h = hash_mix(h, static_cast<std::size_t>(term.coefficient));
    for (const auto& symbol : term.symbols) h = hash_mix(h, std::hash<std::string>{}(symbol->name));
  }
  return h;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(exact(checked_add(a.constant_, b.constant_)));
  std::vector<Dim::Term> terms = a.terms();
  for (Dim::Term& term : b.terms()) terms.push_back(std::move(term));
  return Dim::from_terms(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(exact(checked_sub(a.constant_, b.constant_)));
  return a + b * Dim(-1);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(exact(checked_mul(a.constant_, b.constant_)));
  const std::vector<Dim::Term> left = a.terms(), right = b.terms();
  if (left.size() * right.size() > most_products || degree(left) + degree(right) > highest_degree)
    fail("a size is a product of too many symbols or sums (allowed: {} terms, {} symbols in one)", most_products, highest_degree);
  std::vector<Dim::Term> terms;
  for (const Dim::Term& x : left)
    for (const Dim::Term& y : right) {
      Dim::Monomial symbols = x.symbols;
      symbols.insert(symbols.end(), y.symbols.begin(), y.symbols.end());
      std::sort(symbols.begin(), symbols.end(), [](const auto& s, const auto& t) { return s->name < t->name; });
      terms.push_back({std::move(symbols), exact(checked_mul(x.coefficient, y.coefficient))});
    }
  return Dim::from_terms(std::move(terms));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_static() != b.is_static()) return false;
  if (a.is_static()) return a.constant_ == b.constant_;
  if (a.terms_ == b.terms_) return true;
  return std::equal(a.terms_->begin(), a.terms_->end(), b.terms_->begin(), b.terms_->end(), [](const Dim::Term& x, const Dim::Term& y) {
    return x.coefficient == y.coefficient && monomial_equal(x.symbols, y.symbols);
  });
}

std::optional<Dim> Dim::exact_div(const Dim& a, const Dim& b) {
  if (b == Dim(0)) return std::nullopt;
  if (a.is_static() && b.is_static()) {
    if (b.constant_ == -1) return -a;
    if (a.constant_ % b.constant_ != 0) return std::nullopt;
    return Dim(a.constant_ / b.constant_);
  }
  // Polynomial long division by the leading term; terms are kept in a fixed monomial order.
  Dim quotient, rest = a;
  const Term lead = b.terms().front();
  for (int steps = 0; !(rest == Dim(0)); ++steps) {
    if (steps > 64) return std::nullopt;
    const Term top = rest.terms().front();
    auto symbols = monomial_div(top.symbols, lead.symbols);
    if (!symbols) return std::nullopt;
    const auto ratio = exact_div(Dim(top.coefficient), Dim(lead.coefficient));
    if (!ratio) return std::nullopt;
    Dim step = from_terms({{std::move(*symbols), ratio->constant_}});
    quotient += step;
    rest = rest - step * b;
  }
  return quotient;
}

Dim product(const Dims& dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result *= dim;
  return result;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + dims[i].to_string();
  return text + "]";
}

}  // namespace rlx
