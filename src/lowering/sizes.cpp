#include "lowering/sizes.h"

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "rlx/error.h"

namespace rlx {

Size SizeTable::operator()(const Dim& dim) {
  if (dim.is_static()) return Size(dim.value());
  const auto known = std::ranges::find(dims_, dim);
  const auto position = static_cast<std::size_t>(known - dims_.begin());
  if (known == dims_.end()) terms_.push_back(terms_of(dim)), dims_.push_back(dim);  // terms_of may throw
  return Size::at(position);
}

std::vector<SizeTable::Term> SizeTable::terms_of(const Dim& dim) const {
  std::vector<Term> terms;
  for (const Dim::Term& term : dim.terms()) {
    Term& mine = terms.emplace_back(Term{term.coefficient, {}});
    for (const auto& symbol : term.symbols) {
      const auto it = std::ranges::find(symbols_, symbol->name);
      if (it == symbols_.end()) fail_internal("execute: symbol '{}' has no value", symbol->name);
      mine.symbols.push_back(static_cast<std::size_t>(it - symbols_.begin()));
    }
  }
  return terms;
}

std::vector<std::int64_t> SizeTable::values(const std::vector<std::int64_t>& symbols) const {
  std::vector<std::int64_t> all;
  for (const std::vector<Term>& terms : terms_) {
    std::optional<std::int64_t> total = 0;
    for (const Term& term : terms) {
      std::optional<std::int64_t> product = term.coefficient;
      for (std::size_t symbol : term.symbols)
        if (product) product = checked_mul(*product, symbols[symbol]);
      total = total && product ? checked_add(*total, *product) : std::nullopt;
    }
    if (!total) fail("a size leaves the range of 64-bit integers");
    all.push_back(*total);
  }
  return all;
}

}  // namespace rlx
