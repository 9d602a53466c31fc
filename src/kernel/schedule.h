#pragma once
#include <set>

#include "kernel/kernel.h"

namespace rlx {

struct Statement;
using Block = std::vector<Statement>;

/// One step of a scheduled kernel.
struct Statement {
  enum class Kind : std::uint8_t {
    compute,     // value of `expr`
    begin,       // accumulator of the reduction `expr` set to its neutral value
    loop,        // `body` for each value of `variable`
    accumulate,  // accumulator of `expr` combined with its body
    store,       // kernel.stores[store]
  };
  Kind kind;
  ExprId expr = -1;
  int variable = -1;
  int store = -1;
  Block body;
};

/// A kernel as loops. Grid variables are decoded from one flat index that the caller splits over threads; `body` runs for each.
struct Scheduled {
  std::vector<int> grid;
  Block body;
  /// Loads that only happen under a guard: their index must be clamped, for it is computed in any case.
  std::set<ExprId> guarded_loads;
};

/// Merges neighbouring loops wherever every index treats them as one. Guarantees: the same stores.
void merge_loops(Kernel& kernel);

/// Places every expression in the outermost loop where its variables are known, so invariants are hoisted and every reduction runs
/// once for each value of the variables it depends on.
Scheduled schedule(const Kernel& kernel);

/// Run-time executions of each expression divided by the elements of the value it computes, for reductions, at the bounds of the
/// symbols: 1 = nothing is computed twice.
struct Recompute {
  ValueId value;
  double factor;
};
std::vector<Recompute> recomputation(const Kernel& kernel, const Graph& graph);

/// Arithmetic operations and bytes moved by one run with the given symbols.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
Cost cost(const Kernel& kernel, const Bindings& bindings);

/// Variables that each expression depends on.
std::vector<std::set<int>> free_variables(const Kernel& kernel);

}  // namespace rlx
