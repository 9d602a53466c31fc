#include "ops/contraction/dilated_size.h"

#include "rlx/error.h"

namespace rlx {

Dim strides_in(std::string_view what, const Dim& a, std::int64_t b) {
  std::int64_t constant = 0;
  for (const Dim::Term& term : a.terms())
    if (term.symbols.empty()) constant = term.coefficient;
  const std::int64_t signed_rest = constant % b, rest = signed_rest < 0 ? signed_rest + b : signed_rest;
  if (auto q = Dim::exact_div(a - rest, b)) return *q;
  fail("{}: stride {} on a symbolic size: {} does not divide", what, b, a.to_string());
}

}  // namespace rlx
