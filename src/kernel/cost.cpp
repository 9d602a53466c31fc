#include "kernel/cost.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/graph_data.h"
#include "kernel/lanes.h"

namespace rlx {
void add_index_variables(const Index& index, const std::vector<std::set<int>>& of_expr, std::set<int>& into) {
  index.for_each_atom([&](const Atom& atom) {
    if (atom.kind == Atom::Kind::variable) into.insert(atom.id);
    if (atom.kind == Atom::Kind::loaded)
      into.insert(of_expr[static_cast<std::size_t>(atom.id)].begin(), of_expr[static_cast<std::size_t>(atom.id)].end());
  });
}

void add_free_variables(const Kernel& kernel, std::vector<std::set<int>>& of_expr) {
  for (std::size_t i = of_expr.size(); i < kernel.exprs.size(); ++i) {
    const Expr& e = kernel.exprs[i];
    std::set<int> mine;
    for (ExprId arg : e.args) mine.insert(of_expr[static_cast<std::size_t>(arg)].begin(), of_expr[static_cast<std::size_t>(arg)].end());
    add_index_variables(e.index, of_expr, mine);
    for (const Guard& guard : e.guards) add_index_variables(guard.index, of_expr, mine);
    for (int v : e.variables) mine.erase(v);
    of_expr.push_back(std::move(mine));
  }
}

std::vector<std::set<int>> free_variables(const Kernel& kernel) {
  std::vector<std::set<int>> result;
  result.reserve(kernel.exprs.size());
  add_free_variables(kernel, result);
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

namespace {

/// A loop as the schedule opens it: reductions over one variable share it unless one needs the other.
struct OpenLoop {
  int variable = 0;
  int level = 0;  // how many reductions the one that runs over it waits for, plus one; 0: a loop of the kernel
  auto operator<=>(const OpenLoop&) const = default;
};
using LoopChain = std::vector<OpenLoop>;  // outermost first

/// For each reduction how many others its terms wait for, plus one; for other expressions that of their operands.
std::vector<int> reduction_levels(const Kernel& kernel) {
  std::vector<int> level(kernel.exprs.size(), 0);
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    for_each_operand(kernel.exprs[i], [&](ExprId id) { level[i] = std::max(level[i], level[static_cast<std::size_t>(id)]); });
    level[i] += kernel.exprs[i].kind == Expr::Kind::reduce;
  }
  return level;
}

/// The chains of loops in which the schedule computes each expression: for every place that needs it, up to the last loop that it
/// depends on. The grid always runs whole.
std::vector<std::set<LoopChain>> chains_of(const Kernel& kernel, const std::vector<std::set<int>>& free) {
  const std::vector<int> level = reduction_levels(kernel);
  std::vector<std::set<LoopChain>> chains(kernel.exprs.size());
  const auto need = [&](ExprId id, LoopChain chain) {
    const std::set<int>& mine = free[static_cast<std::size_t>(id)];
    while (chain.size() > grid_loops(kernel) && !mine.count(chain.back().variable)) chain.pop_back();
    chains[static_cast<std::size_t>(id)].insert(std::move(chain));
  };
  LoopChain all;
  for (int loop : kernel.loops) all.push_back({loop, 0});
  for (const KernelStore& store : kernel.stores) {
    need(store.value, all);
    for (ExprId id : loaded_exprs(store.index)) need(id, all);
  }
  for (std::size_t i = kernel.exprs.size(); i-- > 0;)
    for (LoopChain chain : chains[i]) {
      for (int v : kernel.exprs[i].variables) chain.push_back({v, level[i]});
      for_each_operand(kernel.exprs[i], [&](ExprId id) { need(id, chain); });
    }
  return chains;
}

double positions_of(const Kernel& kernel, int variable, const Bindings& bindings) {
  const Variable& loop = kernel.variables[static_cast<std::size_t>(variable)];
  return std::ceil(static_cast<double>(loop.extent.evaluate(bindings)) / loop.step);
}

}  // namespace

std::vector<Recompute> recomputation(const Kernel& kernel, const Graph& graph) {
  const auto free = free_variables(kernel);
  const auto chains = chains_of(kernel, free);
  const bool blocks = worth_blocks(kernel, free);
  std::vector<Recompute> result;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& e = kernel.exprs[i];
    if (e.kind != Expr::Kind::reduce) continue;
    double runs = 0;
    for (const LoopChain& chain : chains[i]) {
      double of_chain = 1;
      for (const OpenLoop& loop : chain) {
        const auto extent = static_cast<double>(kernel.extent(loop.variable).upper());
        const bool by_block = blocks && loop.variable == kernel.loops.back() && !free[i].count(loop.variable);
        of_chain *= by_block ? std::ceil(extent / block_lanes) : extent;
      }
      runs += of_chain;
    }
    const double elements = std::max(1.0, static_cast<double>(graph.type(e.origin).size().upper()));
    result.push_back({e.origin, runs / elements});
  }
  return result;
}

Cost cost(const Kernel& kernel, const Bindings& bindings) {
  const auto free = free_variables(kernel);
  Cost total;
  std::map<int, double> touched, sizes;  // by buffer: elements that its loads read, and all of them
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& e = kernel.exprs[i];
    double runs = 1;
    for (int v : free[i]) runs *= positions_of(kernel, v, bindings);
    for (int v : e.variables) runs *= positions_of(kernel, v, bindings);
    if (e.kind == Expr::Kind::load) {
      touched[e.buffer] += runs;
      sizes[e.buffer] = static_cast<double>(e.last.evaluate(bindings)) + 1;
    }
    if (e.kind == Expr::Kind::scalar || e.kind == Expr::Kind::reduce) total.flops += runs;
    if (e.kind == Expr::Kind::fma) total.flops += 2 * runs;
  }
  for (const auto& [buffer, elements] : touched)
    total.bytes += std::min(elements, sizes[buffer]) * info(kernel.buffers[static_cast<std::size_t>(buffer)].dtype).bits / 8;
  for (const KernelStore& s : kernel.stores) {
    std::set<int> moving;
    add_index_variables(s.index, free, moving);
    double stores = 1;
    for (int v : moving) stores *= positions_of(kernel, v, bindings);
    total.bytes += stores * info(kernel.buffers[static_cast<std::size_t>(s.buffer)].dtype).bits / 8;
  }
  return total;
}

}  // namespace rlx
