#include "runtime/symbols.h"

namespace rlx {

void SymbolBinder::mismatch(const Pending& size, std::int64_t wanted) const {
  fail("input '{}': shape {} does not fit {}: axis {} is {} (allowed: {})", size.input,
       to_string(Dims(size.shape.begin(), size.shape.end())), size.type.to_string(), size.axis, size.shape[size.axis], wanted);
}

/// Finds the only unknown symbol of a size that is linear in it; true when nothing is left to find.
bool SymbolBinder::solve(const Pending& size) {
  std::int64_t known = 0, factor = 0;
  std::shared_ptr<const Dim::Symbol> unknown;
  for (const Dim::Term& term : size.type.shape[size.axis].terms()) {
    std::int64_t product = term.coefficient;
    std::shared_ptr<const Dim::Symbol> here;
    for (const auto& symbol : term.symbols) {
      if (auto it = bindings_.find(symbol->name); it != bindings_.end()) product *= it->second;
      else if (here || (unknown && unknown->name != symbol->name)) return false;
      else here = symbol;
    }
    if (here) unknown = here, factor += product;
    else known += product;
  }
  if (!unknown) return true;
  const std::int64_t rest = size.shape[size.axis] - known;
  if (factor == 0 || rest % factor != 0)
    fail("input '{}': axis {} of {} cannot be {}", size.input, size.axis, size.type.to_string(), size.shape[size.axis]);
  const std::int64_t value = rest / factor;
  if (value < 1 || value > unknown->bound)
    fail("input '{}': shape {} does not fit {}: {} would be {} (allowed: 1..{})", size.input,
         to_string(Dims(size.shape.begin(), size.shape.end())), size.type.to_string(), unknown->name, value, unknown->bound);
  bindings_[unknown->name] = value;
  return true;
}

void SymbolBinder::check(const Pending& size) const {
  const std::int64_t wanted = size.type.shape[size.axis].evaluate(bindings_);
  if (wanted != size.shape[size.axis]) mismatch(size, wanted);
}

void SymbolBinder::bind(std::string_view input, const Type& type, const std::vector<std::int64_t>& shape) {
  if (static_cast<int>(shape.size()) != type.rank())
    fail("input '{}': shape {} has rank {}, {} has rank {}", input, to_string(Dims(shape.begin(), shape.end())), shape.size(),
         type.to_string(), type.rank());
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    Pending size{std::string(input), type, shape, axis};
    if (solve(size)) check(size);
    else pending_.push_back(std::move(size));
  }
}

Bindings SymbolBinder::finish() {
  for (std::size_t round = 0; round <= pending_.size(); ++round)
    for (const Pending& size : pending_) solve(size);
  for (const Pending& size : pending_) check(size);
  return bindings_;
}

}  // namespace rlx
