#pragma once
#include <set>

#include "kernel/kernel.h"

namespace rlx {

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
/// Adds the variables of an index, those behind what it loads included.
void add_index_variables(const Index& index, const std::vector<std::set<int>>& of_expr, std::set<int>& into);

}  // namespace rlx
