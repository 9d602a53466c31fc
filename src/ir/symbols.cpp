#include "ir/symbols.h"

#include <algorithm>
#include <charconv>

#include "base/checked.h"
#include "base/names.h"
#include "ir/graph_data.h"

namespace rlx {
namespace {

/// a / b where that is an integer of 64 bits.
std::optional<std::int64_t> exact_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return checked_sub(std::int64_t{0}, a);
  if (a % b != 0) return std::nullopt;
  return a / b;
}

constexpr std::string_view count_of_runs = "__runs_", size_of_runs = "__run_";

/// A symbol that counts runs, from its name.
struct CountedRuns {
  std::string_view of;
  std::int64_t most = 0;
  bool is_size = false;

  std::int64_t at(std::int64_t size) const {
    const std::int64_t count = size / most + (size % most != 0);
    return is_size ? size / count + (size % count != 0) : count;
  }
};
std::optional<CountedRuns> counted_runs(std::string_view name) {
  for (const std::string_view mark : {count_of_runs, size_of_runs}) {
    const std::size_t at = name.rfind(mark);
    if (at == std::string_view::npos) continue;
    const std::string_view digits = name.substr(at + mark.size());
    CountedRuns runs{name.substr(0, at), 0, mark == size_of_runs};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), runs.most);
    if (error == std::errc() && end == digits.data() + digits.size() && runs.most > 0 && !runs.of.empty()) return runs;
  }
  return std::nullopt;
}

}  // namespace

std::optional<EvenRuns> even_runs(const Dim& size, std::int64_t most) {
  const CountedRuns count{{}, most, false}, length{{}, most, true};
  if (size.is_static()) return size.value() > 0 ? std::optional(EvenRuns{count.at(size.value()), length.at(size.value())}) : std::nullopt;
  std::map<std::string, std::int64_t> symbols;
  size.collect_symbols(symbols);
  const auto& [name, bound] = *symbols.begin();
  if (!(size == Dim::symbol(name, bound)) || counted_runs(name)) return std::nullopt;
  const auto symbol = [&](std::string_view mark, std::int64_t largest) {
    return Dim::symbol(fmt::format("{}{}{}", name, mark, most), largest);
  };
  return EvenRuns{symbol(count_of_runs, count.at(bound)), symbol(size_of_runs, std::min(bound, most))};
}

std::optional<std::int64_t> value_of_symbol(std::string_view name, const Bindings& bindings) {
  if (const auto known = bindings.find(name); known != bindings.end()) return known->second;
  const std::optional<CountedRuns> runs = counted_runs(name);
  const auto size = runs ? bindings.find(runs->of) : bindings.end();
  return size != bindings.end() && size->second > 0 ? std::optional(runs->at(size->second)) : std::nullopt;
}

bool follows_from(const std::map<std::string, std::int64_t>& known, const std::string& name) {
  const std::optional<CountedRuns> runs = counted_runs(name);
  return known.contains(name) || (runs && known.contains(std::string(runs->of)));
}

std::map<std::string, std::int64_t> all_symbols(const Graph& graph) {
  std::map<std::string, std::int64_t> all = graph.symbols();
  for (const Node& node : graph.data().nodes)
    for (const Type& type : node.results)
      for (const Dim& dim : type.shape) dim.collect_symbols(all);
  return all;
}

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
