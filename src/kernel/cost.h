#pragma once
#include <set>

#include "kernel/kernel.h"

namespace rlx {

/// True when a reduction runs over this variable.
bool is_reduced(const Kernel& kernel, int variable);

/// How many of the outermost loops make up the grid, which the caller splits over threads. The innermost one runs inside, unless it is
/// the only one and no reduction runs over it.
std::size_t grid_loops(const Kernel& kernel);

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
/// The same for expressions that the kernel has beyond those in `of_expr`.
void add_free_variables(const Kernel& kernel, std::vector<std::set<int>>& of_expr);
/// Adds the variables of an index, those behind what it loads included.
void add_index_variables(const Index& index, const std::vector<std::set<int>>& of_expr, std::set<int>& into);

}  // namespace rlx
