#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rlx/array.h"
#include "rlx/graph.h"
#include "rlx/type.h"

namespace rlx {

/// A size cut into runs of nearly one length: so many, of so many places each. Together they may have more places than the size.
struct EvenRuns {
  Dim count, size;
};
/// Runs of at most so many places. Those of a symbol `n` are the symbols `n__runs_128` and `n__run_128`, whose values follow from that of n
/// by their names. Nothing for other sizes that are open.
std::optional<EvenRuns> even_runs(const Dim& size, std::int64_t most);

/// The value of a symbol, perhaps of one that counts runs of another; nothing where it does not follow from these.
std::optional<std::int64_t> value_of_symbol(std::string_view name, const Bindings& bindings);
/// Whether a symbol is among those that are known, or counts runs of one of them.
bool follows_from(const std::map<std::string, std::int64_t>& known, const std::string& name);
/// All symbols of a graph's values, with their bounds: those of its inputs, and those that count runs.
std::map<std::string, std::int64_t> all_symbols(const Graph& graph);

/// Collects the values of symbols from the shapes that are bound to inputs, and checks every shape against its type.
class SymbolBinder {
 public:
  /// Throws Error naming the input by its kind and name ("parameter" and "w"), the axis, the size seen and the size allowed. All arguments
  /// are read until `finish` returns.
  void bind(std::string_view kind, std::string_view name, const Type& type, const std::vector<std::int64_t>& shape);
  /// Checks sizes that could not be checked before all symbols were known. Throws Error.
  Bindings finish();

 private:
  struct Size {
    std::string_view kind, name;
    const Type& type;
    const std::vector<std::int64_t>& shape;
    std::size_t axis;
    std::string input() const;
  };
  bool solve(const Size& size);
  void check(const Size& size) const;

  Bindings bindings_;
  std::vector<Size> pending_;
};

}  // namespace rlx
