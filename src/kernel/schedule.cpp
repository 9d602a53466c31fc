#include "kernel/schedule.h"

#include <algorithm>

#include "kernel/groups.h"
#include "kernel/lanes.h"
#include "kernel/rows.h"
#include "kernel/runs.h"

namespace rlx {
namespace {

/// Emits expressions on demand into the outermost open scope that knows their variables.
class Scheduler {
 public:
  Scheduler(const Kernel& kernel, const ScheduleOptions& options)
      : kernel_(kernel), options_(options), free_(free_variables(kernel)), done_(kernel.exprs.size(), false) {
    find_reachable();
  }

  Scheduled run() {
    Scheduled result;
    find_guarded_loads(result);
    choose_loops(result);
    const auto& loops = kernel_.loops;
    const bool own_scope = inner_ || lane_ >= 0 || neighbours_ > 1;
    open({loops.begin(), loops.end() - (own_scope ? 1 : 0)});
    if (own_scope) open({loops.back()});
    for (std::size_t i = 0; i < kernel_.stores.size(); ++i) need_store(i);
    if (own_scope) {
      Block body = close();
      if (lane_ >= 0) body = split_lanes(kernel_, free_, lane_, std::move(body), result.per_lane);
      if (lane_ >= 0 && options_.dots) mark_dots(body);
      const auto kind = neighbours_ > 1 ? Statement::Kind::lanes : lane_ >= 0 ? Statement::Kind::blocks : Statement::Kind::loop;
      scopes_.back().block.push_back({kind, -1, loops.back(), -1, std::move(body)});
      scopes_.back().block.back().vector = neighbours_;
    }
    result.body = close();
    if (kernel_.tile)
      for (auto it = loops.end() - (own_scope ? 1 : 0); it != loops.begin();)
        result.body = Block{{Statement::Kind::loop, -1, *--it, -1, std::move(result.body)}};
    result.in_runs = std::move(in_runs_);
    if (group_.lanes > 0) {
      result.group = group_;
      share_loops(kernel_, free_, result);
    }
    keep_rows(kernel_, result);
    if (options_.lanes && options_.vector > 1) mark_vectors(kernel_, free_, options_.vector, result.body);
    return result;
  }

 private:
  struct Scope {
    std::set<int> variables;
    Block block;
    std::vector<ExprId> computed;  // known inside this scope only
  };
  /// Which loops are the grid, what its positions stand for, and whether the innermost loop runs inside, or in blocks of lanes.
  void choose_loops(Scheduled& result) {
    if (choose_group(result) || choose_neighbours(result) || kernel_.loops.empty()) return;
    const bool blocks = options_.lanes ? worth_vectors(kernel_, free_, options_.vector) : worth_blocks(kernel_, free_);
    const bool all = options_.lanes && !kernel_.tile && (blocks || !runs_inside());
    inner_ = kernel_.tile || (!all && (blocks || runs_inside()));
    if (!kernel_.tile)
      for (const int loop : kernel_.loops) result.grid.push_back({loop, kernel_.variables[static_cast<std::size_t>(loop)].step});
    if (inner_ && !kernel_.tile) result.grid.pop_back();
    if (all && options_.products && !is_one_row_along_columns()) find_product(result);
    if (!blocks || result.product) return;
    lane_ = kernel_.loops.back();
    if (all) result.block_lanes = result.grid.back().step = options_.vector;
    else if (result.grid.empty()) result.split = lane_;
  }
  /// Whether lanes work together.
  bool choose_group(Scheduled& result) {
    if (options_.group == 0 || kernel_.tile) return false;
    const bool inside = !kernel_.loops.empty() && runs_inside();
    const auto group = rlx::choose_group(kernel_, free_, reachable_, options_.group, inside);
    if (!group) return false;
    group_ = *group;
    inner_ = inside;
    for (const int loop : kernel_.loops) result.grid.push_back({loop, kernel_.variables[static_cast<std::size_t>(loop)].step});
    if (inside) result.grid.pop_back();
    if (group_.rows > 1) result.grid.back().step *= group_.rows;
    return true;
  }
  /// Whether a lane computes a vector.
  bool choose_neighbours(Scheduled& result) {
    if (options_.group == 0) return false;
    neighbours_ = neighbours_of_lane(kernel_, free_, reachable_);
    if (neighbours_ == 1) return false;
    for (const int loop : kernel_.loops) result.grid.push_back({loop, kernel_.variables[static_cast<std::size_t>(loop)].step});
    result.grid.back().step = neighbours_;
    return true;
  }
  /// Whether lanes read neighbouring columns as they do one each, which a block of them each would take apart.
  bool is_one_row_along_columns() const {
    if (options_.group == 0) return false;
    const auto block = product_block(kernel_, free_, options_.vector);
    return block && block->row < 0 && neighbours_along_terms(kernel_, free_) < 0;
  }
  void find_product(Scheduled& result) {
    auto block = product_block(kernel_, free_, options_.vector);
    if (!block) return;
    const auto is_guarded = [&](ExprId id) { return result.guarded_loads.count(id) > 0; };
    for (const ProductBlock::Sum& sum : block->sums)
      if (std::ranges::any_of(sum.factors, is_guarded)) return;
    for (const ProductBlock::Sum& sum : block->sums) done_[static_cast<std::size_t>(sum.id)] = true;
    result.product = std::move(block);
    const ProductBlock& product = *result.product;
    for (GridLoop& loop : result.grid)
      loop.step = loop.loop == product.row ? product.rows : loop.loop == product.column ? product.columns : 1;
  }
  /// Whether the innermost loop runs inside a position of the grid.
  bool runs_inside() const {
    if (!options_.lanes) return grid_loops(kernel_) < kernel_.loops.size();
    const int innermost = kernel_.loops.back();
    if (kernel_.extent(innermost) == Dim(1)) return false;
    for (std::size_t i = 0; i < kernel_.exprs.size(); ++i)
      if (reachable_[i] && kernel_.exprs[i].kind == Expr::Kind::reduce && !free_[i].count(innermost) && !is_of_term(i)) return true;
    return std::ranges::any_of(kernel_.stores, [&](const KernelStore& store) { return !moving(store).count(innermost); });
  }
  /// Whether it is reduced for each term of another reduction, by a lane of a group.
  bool is_of_term(std::size_t reduction) const {
    const auto is_looped = [&](int v) { return std::ranges::find(kernel_.loops, v) != kernel_.loops.end(); };
    return options_.group > 0 && !std::ranges::all_of(free_[reduction], is_looped);
  }
  /// The variables that change what is stored, or where.
  std::set<int> moving(const KernelStore& store) const {
    std::set<int> all = free_[static_cast<std::size_t>(store.value)];
    add_index_variables(store.index, free_, all);
    return all;
  }
  void mark_dots(Block& body) const {
    for (Statement& s : body) {
      s.dots = s.kind == Statement::Kind::loop && adds_dots(s);
      mark_dots(s.body);
    }
  }
  /// Whether it computes nothing but such sums.
  bool adds_dots(const Statement& loop) const {
    const Dim& terms = kernel_.extent(loop.variable);
    const auto computes = [](const Statement& s) { return s.kind == Statement::Kind::compute; };
    if (!terms.is_static() || terms.value() % 4 != 0 || loop.body.empty() || loop.body.back().kind != Statement::Kind::lanes) return false;
    if (!std::all_of(loop.body.begin(), loop.body.end() - 1, computes) || kernel_.extent(lane_).upper() % options_.vector != 0)
      return false;
    return std::ranges::all_of(loop.body.back().body, [&](const Statement& s) {
      return computes(s) ||
             (s.kind == Statement::Kind::accumulate && dot_sum(kernel_, free_, s.expr, {lane_, loop.variable, options_.vector}));
    });
  }
  void open(std::set<int> variables) { scopes_.push_back({std::move(variables), {}, {}}); }
  Block close() {
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    set_done(scope, false);
    return std::move(scope.block);
  }
  void set_done(const Scope& scope, bool done) {
    for (ExprId id : scope.computed) done_[static_cast<std::size_t>(id)] = done;
  }
  std::size_t home(ExprId id) const { return home(free_[static_cast<std::size_t>(id)]); }
  /// The innermost open scope of one of these variables.
  std::size_t home(const std::set<int>& variables) const {
    std::size_t depth = 0;
    for (std::size_t s = 1; s < scopes_.size(); ++s)
      for (int v : variables)
        if (scopes_[s].variables.count(v)) depth = s;
    return depth;
  }
  void mark(ExprId id, Scope& scope) {
    done_[static_cast<std::size_t>(id)] = true;
    scope.computed.push_back(id);
  }
  /// In the innermost loop that moves its place: a row's result is stored once.
  void need_store(std::size_t at) {
    const KernelStore& store = kernel_.stores[at];
    need(store.value);
    for (ExprId id : loaded_exprs(store.index)) need(id);
    scopes_[home(moving(store))].block.push_back({Statement::Kind::store, -1, -1, static_cast<int>(at), {}});
  }
  void need(ExprId id) {
    if (done_[static_cast<std::size_t>(id)]) return;
    const Expr& e = kernel_.expr(id);
    if (e.kind == Expr::Kind::reduce) return need_reduction(id, e);
    for_each_operand(e, [&](ExprId operand) { need(operand); });
    Scope& scope = scopes_[home(id)];
    scope.block.push_back({Statement::Kind::compute, id, -1, -1, {}});
    mark(id, scope);
  }

  void need_reduction(ExprId id, const Expr& e) {
    // The scopes below the reduction's own, and what they know, are set aside while its loops are built.
    const std::size_t level = home(id);
    std::vector<Scope> aside;
    while (scopes_.size() > level + 1) {
      set_done(scopes_.back(), false);
      aside.push_back(std::move(scopes_.back()));
      scopes_.pop_back();
    }
    const std::vector<ExprId> group = with_partners(id, level);
    for (ExprId member : group) {
      mark(member, scopes_.back());
      under_way_.insert(member);
    }
    for (int variable : e.variables) open({variable});
    for (ExprId member : group) {
      need(kernel_.expr(member).args[0]);
      scopes_.back().block.push_back({Statement::Kind::accumulate, member, -1, -1, {}});
    }
    std::optional<Runs> runs;
    for (std::size_t i = e.variables.size(); i-- > 0;) {
      Block body = close();
      if (i == 0) push_each(scopes_.back().block, Statement::Kind::begin, group);
      Block loop{{Statement::Kind::loop, -1, e.variables[i], -1, std::move(body)}};
      if (i + 1 == e.variables.size()) runs = runs_of_sums(group, loop);
      if (runs && i == runs->at + (runs->steps == 1 ? 1 : 0)) loop = in_runs(std::move(loop), *runs, group);
      std::ranges::move(loop, std::back_inserter(scopes_.back().block));
    }
    for (ExprId member : group) under_way_.erase(member);
    while (!aside.empty()) {
      set_done(aside.back(), true);
      scopes_.push_back(std::move(aside.back()));
      aside.pop_back();
    }
  }
  static void push_each(Block& block, Statement::Kind kind, const std::vector<ExprId>& members) {
    for (ExprId member : members) block.push_back({kind, member, -1, -1, {}});
  }
  static std::size_t count(const Block& block) {
    std::size_t all = block.size();
    for (const Statement& s : block) all += count(s.body);
    return all;
  }
  std::optional<Runs> runs_of_sums(const std::vector<ExprId>& group, const Block& innermost) const {
    constexpr std::size_t light = 24;  // statements
    const bool by_lane = (options_.lanes && options_.vector == 1) || free_[static_cast<std::size_t>(group[0])].count(lane_) > 0;
    if (std::ranges::none_of(group, [&](ExprId member) { return is_float_sum(kernel_.expr(member)); })) return std::nullopt;
    if (group_.lanes > 0 && is_of_group(group[0])) return runs_of_group(kernel_, group[0], group_.lanes);
    const bool apart = !by_lane && !options_.lanes && lies_apart(kernel_, innermost[0]);
    return runs_of(kernel_, kernel_.expr(group[0]).variables, by_lane, !options_.lanes && count(innermost) <= light, apart);
  }
  /// Whether it is of a whole position, and not of a term of another reduction.
  bool is_of_group(ExprId id) const {
    const std::set<int>& mine = free_[static_cast<std::size_t>(id)];
    const auto end = kernel_.loops.end() - (inner_ ? 1 : 0);
    return std::ranges::all_of(mine, [&](int v) { return std::find(kernel_.loops.begin(), end, v) != end; });
  }
  /// The loop in runs, or where these are of one step as a run of its own, with the sums among `group` carried from run to run.
  Block in_runs(Block loop, const Runs& runs, const std::vector<ExprId>& group) {
    std::vector<ExprId> sums;
    std::ranges::copy_if(group, std::back_inserter(sums), [&](ExprId member) { return is_float_sum(kernel_.expr(member)); });
    in_runs_.insert(sums.begin(), sums.end());
    const int variable = loop[0].variable;
    Block run;
    push_each(run, Statement::Kind::restart, sums);
    run.push_back(std::move(loop[0]));
    push_each(run, Statement::Kind::carry, sums);
    if (runs.steps == 1) return run;
    return {{Statement::Kind::runs, -1, variable, -1, std::move(run), false, runs.steps, runs.whole}};
  }
  /// The reductions that can run in the loops of `id`: over the same variables, at the same place, with terms that are known, and not
  /// needed by `id` itself.
  std::vector<ExprId> with_partners(ExprId id, std::size_t level) const {
    std::vector<ExprId> group{id};
    const std::set<ExprId> needed = operands_of(kernel_.expr(id).args[0]);
    for (std::size_t i = 0; i < kernel_.exprs.size(); ++i) {
      const auto other = static_cast<ExprId>(i);
      if (other == id || done_[i] || !reachable_[i] || needed.count(other) || kernel_.exprs[i].variables != kernel_.expr(id).variables)
        continue;
      if (free_[i] == free_[static_cast<std::size_t>(id)] && home(other) == level && !has_open_reduction(kernel_.exprs[i]))
        group.push_back(other);
    }
    return group;
  }
  /// Whether the terms of a reduction need another whose value is not known yet. What a lane of a group reduces alone, inside of the loop,
  /// is known there.
  bool has_open_reduction(const Expr& e) const {
    const auto is_inside = [&](ExprId id) {
      const std::set<int>& mine = free_[static_cast<std::size_t>(id)];
      return group_.lanes > 0 && std::ranges::any_of(e.variables, [&](int v) { return mine.count(v) > 0; });
    };
    for (ExprId operand : operands_of(e.args[0])) {
      if (kernel_.expr(operand).kind != Expr::Kind::reduce) continue;
      if (under_way_.count(operand) || (!done_[static_cast<std::size_t>(operand)] && !is_inside(operand))) return true;
    }
    return false;
  }
  std::set<ExprId> operands_of(ExprId id) const {
    return needed_by(kernel_, id, [](ExprId) { return true; });
  }

  void find_reachable() {
    reachable_.assign(kernel_.exprs.size(), false);
    const auto reach = [&](ExprId id) { reachable_[static_cast<std::size_t>(id)] = true; };
    for (const KernelStore& s : kernel_.stores) {
      reach(s.value);
      for (ExprId id : loaded_exprs(s.index)) reach(id);
    }
    for (std::size_t i = kernel_.exprs.size(); i-- > 0;)
      if (reachable_[i]) for_each_operand(kernel_.exprs[i], reach);
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
        result.guarded_loads.emplace(static_cast<ExprId>(i), unguarded_part(kernel_.exprs[i]));
  }

  /// See Scheduled::guarded_loads.
  Index unguarded_part(const Expr& load) const {
    std::set<int> asked;
    for (const Expr& e : kernel_.exprs)
      for (const Guard& guard : e.guards) add_index_variables(guard.index, free_, asked);
    const auto is_plain = [](const Index::Term& term) { return term.atom->kind == Atom::Kind::variable; };
    Index plain, part;
    for (const Index::Term& term : load.index.terms())
      if (is_plain(term)) plain = plain + Index::of_term(term.atom, term.coefficient);
    add_index_variables(load.index - plain, free_, asked);  // what is divided or loaded
    for (const Index::Term& term : plain.terms())
      if (!asked.count(term.atom->id) && term.coefficient.known_non_negative()) part = part + Index::of_term(term.atom, term.coefficient);
    const auto reach = part.upper();
    return reach && (load.last - *reach).known_non_negative() ? part : Index();
  }

  const Kernel& kernel_;
  const ScheduleOptions& options_;
  std::vector<std::set<int>> free_;
  std::vector<bool> done_, reachable_;
  bool inner_ = false;  // the innermost loop runs inside a position
  int lane_ = -1;       // the loop whose lanes run in blocks
  Group group_;
  int neighbours_ = 1;          // that a lane computes
  std::set<ExprId> under_way_;  // reductions whose loops are being built
  std::set<ExprId> in_runs_;
  std::vector<Scope> scopes_;
};

}  // namespace

Scheduled schedule(const Kernel& kernel, const ScheduleOptions& options) { return Scheduler(kernel, options).run(); }

}  // namespace rlx
