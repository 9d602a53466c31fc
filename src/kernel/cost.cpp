#include "kernel/cost.h"

#include <algorithm>
#include <map>

#include "ir/graph_data.h"

namespace rlx {
void add_index_variables(const Index& index, const std::vector<std::set<int>>& of_expr, std::set<int>& into) {
  index.for_each_atom([&](const Atom& atom) {
    if (atom.kind == Atom::Kind::variable) into.insert(atom.id);
    if (atom.kind == Atom::Kind::loaded)
      into.insert(of_expr[static_cast<std::size_t>(atom.id)].begin(), of_expr[static_cast<std::size_t>(atom.id)].end());
  });
}

std::vector<std::set<int>> free_variables(const Kernel& kernel) {
  std::vector<std::set<int>> result(kernel.exprs.size());
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& e = kernel.exprs[i];
    std::set<int>& mine = result[i];
    for (ExprId arg : e.args) mine.insert(result[static_cast<std::size_t>(arg)].begin(), result[static_cast<std::size_t>(arg)].end());
    add_index_variables(e.index, result, mine);
    for (const Guard& guard : e.guards) add_index_variables(guard.index, result, mine);
    for (int v : e.variables) mine.erase(v);
  }
  return result;
}

bool is_reduced(const Kernel& kernel, int variable) {
  return std::any_of(kernel.exprs.begin(), kernel.exprs.end(),
                     [&](const Expr& e) { return std::find(e.variables.begin(), e.variables.end(), variable) != e.variables.end(); });
}

std::size_t grid_loops(const Kernel& kernel) {
  if (kernel.tile || kernel.loops.empty()) return 0;
  if (kernel.loops.size() > 1) return kernel.loops.size() - 1;
  return is_reduced(kernel, kernel.loops[0]) ? 0 : 1;
}

std::vector<Recompute> recomputation(const Kernel& kernel, const Graph& graph) {
  const auto free = free_variables(kernel);
  const std::size_t outer = grid_loops(kernel);
  std::vector<Recompute> result;
  // Variables bound by reductions around an expression come through its free variables; the grid always runs whole.
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& e = kernel.exprs[i];
    if (e.kind != Expr::Kind::reduce) continue;
    double runs = 1;
    std::size_t depth = outer;
    for (std::size_t l = outer; l < kernel.loops.size(); ++l)
      if (free[i].count(kernel.loops[l])) depth = l + 1;
    for (std::size_t l = 0; l < depth; ++l) runs *= static_cast<double>(kernel.extent(kernel.loops[l]).upper());
    for (int v : free[i])
      if (std::find(kernel.loops.begin(), kernel.loops.end(), v) == kernel.loops.end())
        runs *= static_cast<double>(kernel.extent(v).upper());
    // A reduction for each place of a row that another one runs over is needed in the loops of both, the inner loop and the other's.
    if (!kernel.loops.empty() && free[i].count(kernel.loops.back()) && is_reduced(kernel, kernel.loops.back())) runs *= 2;
    const double elements = std::max(1.0, static_cast<double>(graph.type(e.origin).size().upper()));
    result.push_back({e.origin, runs / elements});
  }
  return result;
}

Cost cost(const Kernel& kernel, const Bindings& bindings) {
  const auto free = free_variables(kernel);
  Cost total;
  double grid = 1;
  for (int v : kernel.loops) grid *= static_cast<double>(kernel.extent(v).evaluate(bindings));
  std::map<int, double> touched;  // distinct elements of a buffer, at most
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& e = kernel.exprs[i];
    double runs = 1;
    for (int v : free[i]) runs *= static_cast<double>(kernel.extent(v).evaluate(bindings));
    for (int v : e.variables) runs *= static_cast<double>(kernel.extent(v).evaluate(bindings));
    if (e.kind == Expr::Kind::load) touched[e.buffer] = std::max(touched[e.buffer], runs);
    if (e.kind == Expr::Kind::scalar || e.kind == Expr::Kind::reduce) total.flops += runs;
    if (e.kind == Expr::Kind::fma) total.flops += 2 * runs;
  }
  for (const auto& [buffer, elements] : touched)
    total.bytes += elements * info(kernel.buffers[static_cast<std::size_t>(buffer)].dtype).bits / 8;
  for (const KernelStore& s : kernel.stores) total.bytes += grid * info(kernel.buffers[static_cast<std::size_t>(s.buffer)].dtype).bits / 8;
  return total;
}

}  // namespace rlx
