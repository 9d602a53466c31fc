#include "ir/symbols.h"

#include "base/checked.h"
#include "base/names.h"

namespace rlx {
namespace {

/// a / b where that is an integer of 64 bits.
std::optional<std::int64_t> exact_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return checked_sub(std::int64_t{0}, a);
  if (a % b != 0) return std::nullopt;
  return a / b;
}

}  // namespace

std::string SymbolBinder::Size::input() const { return fmt::format("{} {}", kind, quote_name(name)); }

/// Finds the only unknown symbol of a size that is linear in it; true when nothing is left to find.
bool SymbolBinder::solve(const Size& size) {
  // Nothing once a step leaves 64 bits: no size can then fit.
  std::optional<std::int64_t> known = 0, factor = 0;
  const auto add = [](std::optional<std::int64_t> a, std::optional<std::int64_t> b) { return a && b ? checked_add(*a, *b) : std::nullopt; };
  std::shared_ptr<const Dim::Symbol> unknown;
  for (const Dim::Term& term : size.type.shape[size.axis].terms()) {
    std::optional<std::int64_t> product = term.coefficient;
    std::shared_ptr<const Dim::Symbol> here;
    for (const auto& symbol : term.symbols) {
      if (auto it = bindings_.find(symbol->name); it != bindings_.end()) product = product ? checked_mul(*product, it->second) : product;
      else if (here || (unknown && unknown->name != symbol->name)) return false;
      else here = symbol;
    }
    if (here) unknown = here, factor = add(factor, product);
    else known = add(known, product);
  }
  if (!unknown) return true;
  const auto rest = known ? checked_sub(size.shape[size.axis], *known) : std::nullopt;
  const auto value = rest && factor ? exact_quotient(*rest, *factor) : std::nullopt;
  if (!value) fail("{}: axis {} of {} cannot be {}", size.input(), size.axis, size.type.to_string(), size.shape[size.axis]);
  if (*value < 1 || *value > unknown->bound)
    fail("{}: shape {} does not fit {}: {} would be {} (allowed: 1..{})", size.input(),
         to_string(Dims(size.shape.begin(), size.shape.end())), size.type.to_string(), unknown->name, *value, unknown->bound);
  bindings_[unknown->name] = *value;
  return true;
}

void SymbolBinder::check(const Size& size) const {
  const std::int64_t wanted = size.type.shape[size.axis].evaluate(bindings_);
  if (wanted != size.shape[size.axis])
    fail("{}: shape {} does not fit {}: axis {} is {} (allowed: {})", size.input(), to_string(Dims(size.shape.begin(), size.shape.end())),
         size.type.to_string(), size.axis, size.shape[size.axis], wanted);
}

void SymbolBinder::bind(std::string_view kind, std::string_view name, const Type& type, const std::vector<std::int64_t>& shape) {
  if (static_cast<int>(shape.size()) != type.rank())
    fail("{} {}: shape {} has rank {}, {} has rank {}", kind, quote_name(name), to_string(Dims(shape.begin(), shape.end())), shape.size(),
         type.to_string(), type.rank());
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const Size size{kind, name, type, shape, axis};
    if (solve(size)) check(size);
    else pending_.push_back(size);
  }
}

Bindings SymbolBinder::finish() {
  for (std::size_t round = 0; round <= pending_.size(); ++round)
    for (const Size& size : pending_) solve(size);
  for (const Size& size : pending_) check(size);
  return bindings_;
}

}  // namespace rlx
