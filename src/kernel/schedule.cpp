#include "kernel/schedule.h"

#include <algorithm>

#include "ir/graph_data.h"

namespace rlx {
namespace {

void add_index_variables(const Index& index, const std::vector<std::set<int>>& of_expr, std::set<int>& into) {
  index.for_each_atom([&](const Atom& atom) {
    if (atom.kind == Atom::Kind::variable) into.insert(atom.id);
    if (atom.kind == Atom::Kind::loaded)
      into.insert(of_expr[static_cast<std::size_t>(atom.id)].begin(), of_expr[static_cast<std::size_t>(atom.id)].end());
  });
}

template <class Visit>
void for_each_index(Expr& e, const Visit& visit) {
  visit(e.index);
  for (Guard& guard : e.guards) visit(guard.index);
}

/// Expressions that an index needs: those behind its loaded atoms.
std::vector<ExprId> loaded_exprs(const Index& index) {
  std::vector<ExprId> ids;
  index.for_each_atom([&](const Atom& atom) {
    if (atom.kind == Atom::Kind::loaded) ids.push_back(atom.id);
  });
  return ids;
}

/// True when `index` uses a and b only as a * extent(b) + b.
bool uses_as_one(const Index& index, int a, int b, const Dim& extent_b) {
  Dim coefficient_a = 0, coefficient_b = 0;
  for (const Index::Term& term : index.terms()) {
    if (term.atom->kind == Atom::Kind::variable) {
      if (term.atom->id == a) coefficient_a = term.coefficient;
      if (term.atom->id == b) coefficient_b = term.coefficient;
    } else if (term.atom->numerator) {
      bool inside = false;
      term.atom->numerator->for_each_atom(
          [&](const Atom& atom) { inside = inside || (atom.kind == Atom::Kind::variable && (atom.id == a || atom.id == b)); });
      if (inside) return false;
    }
  }
  return coefficient_a == coefficient_b * extent_b;
}

bool try_merge(Kernel& kernel, std::size_t at) {
  const int a = kernel.loops[at], b = kernel.loops[at + 1];
  const Dim extent_b = kernel.extent(b);
  bool fits = true;
  for (Expr& e : kernel.exprs) for_each_index(e, [&](Index& i) { fits = fits && uses_as_one(i, a, b, extent_b); });
  for (KernelStore& s : kernel.stores) fits = fits && uses_as_one(s.index, a, b, extent_b);
  if (!fits) return false;
  const int merged = kernel.add_variable(kernel.extent(a) * extent_b);
  const auto replace = [&](const Atom& atom) -> Index {
    if (atom.kind == Atom::Kind::loaded) return Index::loaded(atom.id, atom.extent);
    if (atom.id == a) return 0;
    return atom.id == b ? Index::variable(merged, kernel.extent(merged)) : Index::variable(atom.id, atom.extent);
  };
  for (Expr& e : kernel.exprs) for_each_index(e, [&](Index& i) { i = i.substitute(replace); });
  for (KernelStore& s : kernel.stores) s.index = s.index.substitute(replace);
  kernel.loops[at] = merged;
  kernel.loops.erase(kernel.loops.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  return true;
}

/// Emits expressions on demand into the outermost open scope that knows their variables.
class Scheduler {
 public:
  explicit Scheduler(const Kernel& kernel) : kernel_(kernel), free_(free_variables(kernel)), done_(kernel.exprs.size(), false) {}

  Scheduled run() {
    Scheduled result;
    const auto& loops = kernel_.loops;
    const bool inner = kernel_.tile ? !loops.empty() : loops.size() > 1;
    const std::size_t outer = loops.size() - (inner ? 1 : 0);
    if (!kernel_.tile) result.grid.assign(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(outer));
    open({loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(outer)});
    if (inner) open({loops.back()});
    for (std::size_t i = 0; i < kernel_.stores.size(); ++i) {
      need(kernel_.stores[i].value);
      need_index(kernel_.stores[i].index);
      Statement store{Statement::Kind::store, -1, -1, static_cast<int>(i), {}};
      scopes_.back().block.push_back(std::move(store));
    }
    if (inner) {
      Block body = close();
      scopes_.back().block.push_back({Statement::Kind::loop, -1, loops.back(), -1, std::move(body)});
    }
    result.body = close();
    for (auto it = kernel_.tile ? loops.rbegin() + (inner ? 1 : 0) : loops.rend(); it != loops.rend(); ++it) {
      Block outer_body;
      outer_body.push_back({Statement::Kind::loop, -1, *it, -1, std::move(result.body)});
      result.body = std::move(outer_body);
    }
    find_guarded_loads(result);
    return result;
  }

 private:
  struct Scope {
    std::set<int> variables;
    Block block;
  };
  void open(std::set<int> variables) { scopes_.push_back({std::move(variables), {}}); }
  Block close() {
    Block block = std::move(scopes_.back().block);
    scopes_.pop_back();
    return block;
  }
  Scope& home(ExprId id) {
    std::size_t depth = 0;
    for (std::size_t s = 1; s < scopes_.size(); ++s)
      for (int v : free_[static_cast<std::size_t>(id)])
        if (scopes_[s].variables.count(v)) depth = s;
    return scopes_[depth];
  }
  void need_index(const Index& index) {
    for (ExprId id : loaded_exprs(index)) need(id);
  }
  void need(ExprId id) {
    if (done_[static_cast<std::size_t>(id)]) return;
    done_[static_cast<std::size_t>(id)] = true;
    const Expr& e = kernel_.expr(id);
    if (e.kind == Expr::Kind::reduce) return need_reduction(id, e);
    for (ExprId arg : e.args) need(arg);
    need_index(e.index);
    for (const Guard& guard : e.guards) need_index(guard.index);
    home(id).block.push_back({Statement::Kind::compute, id, -1, -1, {}});
  }
  void need_reduction(ExprId id, const Expr& e) {
    // The scopes below the reduction's own are set aside while its loops are built.
    const auto level = static_cast<std::size_t>(&home(id) - scopes_.data());
    std::vector<Scope> aside;
    while (scopes_.size() > level + 1) {
      aside.push_back(std::move(scopes_.back()));
      scopes_.pop_back();
    }
    for (int variable : e.variables) open({variable});
    need(e.args[0]);
    scopes_.back().block.push_back({Statement::Kind::accumulate, id, -1, -1, {}});
    for (std::size_t i = e.variables.size(); i-- > 0;) {
      Block body = close();
      if (i == 0) scopes_.back().block.push_back({Statement::Kind::begin, id, -1, -1, {}});
      scopes_.back().block.push_back({Statement::Kind::loop, -1, e.variables[i], -1, std::move(body)});
    }
    while (!aside.empty()) {
      scopes_.push_back(std::move(aside.back()));
      aside.pop_back();
    }
  }

  void find_guarded_loads(Scheduled& result) const {
    std::set<ExprId> free_uses, seen;
    std::vector<ExprId> stack;
    auto visit = [&](ExprId id) {
      if (seen.insert(id).second) stack.push_back(id);
    };
    auto visit_index = [&](const Index& index) {
      for (ExprId id : loaded_exprs(index)) visit(id);
    };
    for (const KernelStore& s : kernel_.stores) visit(s.value), visit_index(s.index);
    while (!stack.empty()) {
      const ExprId id = stack.back();
      stack.pop_back();
      const Expr& e = kernel_.expr(id);
      free_uses.insert(id);
      visit_index(e.index);
      for (const Guard& guard : e.guards) visit_index(guard.index);
      if (e.kind != Expr::Kind::choose)
        for (ExprId arg : e.args) visit(arg);
    }
    for (std::size_t i = 0; i < kernel_.exprs.size(); ++i)
      if (kernel_.exprs[i].kind == Expr::Kind::load && !free_uses.count(static_cast<ExprId>(i)))
        result.guarded_loads.insert(static_cast<ExprId>(i));
  }

  const Kernel& kernel_;
  std::vector<std::set<int>> free_;
  std::vector<bool> done_;
  std::vector<Scope> scopes_;
};

}  // namespace

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

void merge_loops(Kernel& kernel) {
  if (kernel.tile) return;
  for (std::size_t at = kernel.loops.size(); at-- > 0;)
    if (kernel.extent(kernel.loops[at]) == Dim(1)) kernel.loops.erase(kernel.loops.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t at = kernel.loops.size(); at-- > 1;) try_merge(kernel, at - 1);
}

Scheduled schedule(const Kernel& kernel) { return Scheduler(kernel).run(); }

std::vector<Recompute> recomputation(const Kernel& kernel, const Graph& graph) {
  const auto free = free_variables(kernel);
  const std::size_t outer = kernel.loops.size() > 1 ? kernel.loops.size() - 1 : kernel.loops.size();
  std::vector<Recompute> result;
  // Variables bound by reductions around an expression come through its free variables; the grid always runs whole.
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& e = kernel.exprs[i];
    if (e.kind != Expr::Kind::reduce) continue;
    double runs = 1;
    std::size_t depth = 0;
    for (std::size_t l = 0; l < kernel.loops.size(); ++l)
      if (free[i].count(kernel.loops[l])) depth = std::max(depth, l < outer ? outer : l + 1);
    for (std::size_t l = 0; l < depth; ++l) runs *= static_cast<double>(kernel.extent(kernel.loops[l]).upper());
    for (int v : free[i])
      if (std::find(kernel.loops.begin(), kernel.loops.end(), v) == kernel.loops.end()) {
        if (depth < outer) {  // inside another reduction, which runs for every row
          for (std::size_t l = depth; l < outer; ++l) runs *= static_cast<double>(kernel.extent(kernel.loops[l]).upper());
          depth = outer;
        }
        runs *= static_cast<double>(kernel.extent(v).upper());
      }
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
