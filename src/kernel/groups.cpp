#include "kernel/groups.h"

#include <algorithm>

#include "kernel/lanes.h"
#include "kernel/runs.h"

namespace rlx {
namespace {

constexpr std::int64_t fewest_terms = 64;  // that are worth a group
constexpr std::int64_t warp = warp_lanes;
constexpr std::int64_t most_terms_of_element = 64;                 // that a lane of a group reduces alone
constexpr std::int64_t terms_of_lane = 16, products_of_lane = 64;  // that are added one to the other

std::int64_t upper(const Kernel& kernel, int variable) { return kernel.extent(variable).upper(); }

std::int64_t product_of_uppers(const Kernel& kernel, const std::vector<int>& variables) {
  std::int64_t all = 1;
  for (const int v : variables) all = std::min(all * std::max<std::int64_t>(1, upper(kernel, v)), std::int64_t{1} << 40);
  return all;
}

/// Whether lanes share the values of all the variables, counted as one; else those of the last.
bool shares_all(const Kernel& kernel, const std::vector<int>& variables) { return upper(kernel, variables.back()) < warp; }

bool can_share(const Kernel& kernel, const std::vector<int>& variables) {
  if (!shares_all(kernel, variables)) return true;
  const std::int64_t terms = product_of_uppers(kernel, variables);
  return terms >= warp && terms <= warp * products_of_lane &&
         std::ranges::all_of(variables, [&](int v) { return kernel.extent(v).is_static(); });
}

constexpr int vector_bytes = 16, most_neighbours = 8;

bool divides(int vector, const Dim& size) {
  return std::ranges::all_of(size.terms(), [&](const Dim::Term& term) { return term.coefficient % vector == 0; });
}

/// Whether vectors of neighbours along the variable begin where memory has bounds of 16 bytes.
bool is_aligned(const KernelBuffer& buffer, const Index& index, int variable, int vector) {
  const auto fits = [&](const Index::Term& term) {
    return (term.atom->kind == Atom::Kind::variable && term.atom->id == variable) || divides(vector, term.coefficient);
  };
  return buffer.aligned && divides(vector, index.constant()) && std::ranges::all_of(index.terms(), fits);
}

int bytes_of(const KernelBuffer& buffer) { return std::max(1, info(buffer.dtype).bits / 8); }

std::int64_t power_of_two(std::int64_t least) {
  std::int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

}  // namespace

std::optional<Group> choose_group(const Kernel& kernel, const std::vector<std::set<int>>& free, const std::vector<bool>& used,
                                  int most_lanes, bool inside) {
  std::vector<int> rows(kernel.loops.begin(), kernel.loops.end() - (inside ? 1 : 0));
  std::int64_t longest = 0;
  std::set<int> terms;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i)
    if (used[i] && kernel.exprs[i].kind == Expr::Kind::reduce)
      terms.insert(kernel.exprs[i].variables.begin(), kernel.exprs[i].variables.end());
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& e = kernel.exprs[i];
    if (!used[i] || e.kind != Expr::Kind::reduce) continue;
    if (std::ranges::any_of(free[i], [&](int v) { return terms.count(v) > 0; })) continue;  // a lane has it alone
    if (inside && free[i].count(kernel.loops.back())) {                                     // of one element, by the lane that has it
      if (product_of_uppers(kernel, e.variables) > most_terms_of_element) return std::nullopt;
      continue;
    }
    if (!can_share(kernel, e.variables)) return std::nullopt;
    const bool by_one = shares_all(kernel, e.variables);  // whose terms are reductions mostly
    longest = std::max(longest, product_of_uppers(kernel, e.variables) * (by_one ? 2 : 1));
  }
  if (longest < fewest_terms) return std::nullopt;
  const std::int64_t positions = product_of_uppers(kernel, rows);
  constexpr std::int64_t few = 2048, many = 16384;  // of positions: warps that fill a large device, and more than that
  if (!inside && !rows.empty()) {
    constexpr std::int64_t few_rows = 8;
    const auto block = product_block(kernel, free, 1);
    if (block && block->row >= 0 && upper(kernel, block->row) >= few_rows) return std::nullopt;
    const int along_terms = neighbours_along_terms(kernel, free);
    if (along_terms < 0 || (along_terms == 0 && positions > many)) return std::nullopt;
  }
  const std::int64_t lanes = std::clamp<std::int64_t>(power_of_two((longest + terms_of_lane - 1) / terms_of_lane), warp, most_lanes);
  Group group{inside || positions < few ? static_cast<int>(lanes) : static_cast<int>(warp), 1, {}};
  constexpr int rows_of_block = 4;
  if (group.lanes == warp && !rows.empty()) {
    const int step = kernel.variables[static_cast<std::size_t>(rows.back())].step;
    if (upper(kernel, rows.back()) >= rows_of_block * step) group.rows = rows_of_block;
  }
  return group;
}

int aligned_bytes(const KernelBuffer& buffer, const Index& index, int variable) {
  int count = vector_bytes / bytes_of(buffer);
  while (count > 1 && !is_aligned(buffer, index, variable, count)) count /= 2;
  return count * bytes_of(buffer);
}

int neighbours_of_lane(const Kernel& kernel, const std::vector<std::set<int>>& free, const std::vector<bool>& used) {
  constexpr std::int64_t fewest = 1 << 19;  // elements: vectors that fill a large device
  if (kernel.tile || kernel.loops.empty() || product_of_uppers(kernel, kernel.loops) < fewest) return 1;
  const int lane = kernel.loops.back();
  const Dim& extent = kernel.extent(lane);
  if (!extent.is_static() || kernel.variables[static_cast<std::size_t>(lane)].step != 1) return 1;
  int vector = most_neighbours;
  bool all = true;
  const auto place = [&](int id, const Index& index) {
    const KernelBuffer& buffer = kernel.buffers[static_cast<std::size_t>(id)];
    while (vector > 1 && (vector * bytes_of(buffer) > 2 * vector_bytes || !is_aligned(buffer, index, lane, vector))) vector /= 2;
    all = all && steps_by_one(index, lane);
  };
  for (const KernelStore& store : kernel.stores) place(store.buffer, store.index);
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    if (!used[i]) continue;
    if (kernel.exprs[i].kind == Expr::Kind::reduce) return 1;
    if (kernel.exprs[i].kind == Expr::Kind::load && free[i].count(lane)) place(kernel.exprs[i].buffer, kernel.exprs[i].index);
  }
  while (vector > 1 && extent.value() % vector != 0) vector /= 2;
  return all ? vector : 1;
}

std::optional<Runs> runs_of_group(const Kernel& kernel, ExprId sum, int lanes) {
  const std::vector<int>& variables = kernel.expr(sum).variables;
  if (shares_all(kernel, variables)) return std::nullopt;
  const Expr& body = kernel.expr(kernel.expr(sum).args[0]);
  const bool is_product = body.kind == Expr::Kind::scalar && body.op == ScalarOp::mul;
  const std::int64_t run = is_product ? products_of_lane : terms_of_lane;
  std::int64_t terms = 1;
  for (std::size_t at = variables.size(); at-- > 0;) {
    const bool is_shared = at + 1 == variables.size();
    const std::int64_t extent = upper(kernel, variables[at]), of_lane = is_shared ? (extent + lanes - 1) / lanes : extent;
    if (of_lane > run / terms) {
      const std::int64_t steps = std::max<std::int64_t>(1, run / terms) * (is_shared ? lanes : 1);
      return Runs{at, steps, is_shared ? steps : 0};
    }
    terms *= std::max<std::int64_t>(1, of_lane);
  }
  return std::nullopt;
}

namespace {

class Sharer {
 public:
  Sharer(const Kernel& kernel, const std::vector<std::set<int>>& free, Scheduled& scheduled)
      : kernel_(kernel), free_(free), scheduled_(scheduled), lanes_(scheduled.group.lanes) {}

  void run() {
    for (Statement& s : scheduled_.body)
      if (Statement* const loop = loop_of(s)) share(*loop, s.kind == Statement::Kind::loop);
    for (auto& [variable, loops] : shared_) choose_vectors(variable, loops);
  }

 private:
  struct Shared {
    Statement* loop;
    bool is_whole;  // and not a run of values
  };

  static Statement* loop_of(Statement& s) {
    if (s.kind == Statement::Kind::loop) return &s;
    if (s.kind != Statement::Kind::runs) return nullptr;
    return &*std::ranges::find(s.body, Statement::Kind::loop, &Statement::kind);
  }
  /// The loop inside that goes through the other variables of the same reductions.
  Statement* next_of(Statement& loop) const {
    Statement* next = nullptr;
    for (Statement& s : loop.body) {
      if (s.kind == Statement::Kind::accumulate && kernel_.expr(s.expr).variables.back() == loop.variable) return nullptr;
      if (s.kind == Statement::Kind::store) return nullptr;
      if (Statement* const inner = loop_of(s)) next = inner;
    }
    return next;
  }
  void share(Statement& outermost, bool is_whole) {
    std::vector<Statement*> chain{&outermost};
    while (Statement* const next = next_of(*chain.back())) chain.push_back(next);
    Statement& innermost = *chain.back();
    for (const Statement& s : innermost.body)
      if (s.kind == Statement::Kind::accumulate && kernel_.expr(s.expr).variables.back() == innermost.variable)
        scheduled_.group.parts.insert(s.expr);
    if (chain.size() > 1 && kernel_.extent(innermost.variable).upper() < warp_lanes) {
      outermost.shared = static_cast<int>(chain.size());
      return;
    }
    innermost.shared = 1;
    shared_[innermost.variable].push_back({&innermost, is_whole && chain.size() == 1});
  }

  /// The number of neighbours with which the vectors of all these loops begin where memory has bounds of 16 bytes.
  void choose_vectors(int variable, const std::vector<Shared>& loops) {
    const Dim& extent = kernel_.extent(variable);
    const bool is_whole = extent.is_static() && std::ranges::all_of(loops, &Shared::is_whole);
    const auto holds_loop = [](const Shared& shared) {
      return std::ranges::any_of(shared.loop->body, [](Statement& s) { return loop_of(s); });
    };
    const bool by_one = std::ranges::any_of(loops, holds_loop);  // as each is much work
    int vector = 1;
    for (const Shared& shared : loops) {
      const int bytes = by_one ? 0 : narrowest(*shared.loop);
      if (bytes > 0) vector = std::max(vector, std::min(most_neighbours, vector_bytes / bytes));
    }
    const auto fits = [&] {
      return (!is_whole || extent.value() % vector == 0) &&
             std::ranges::all_of(loops, [&](const Shared& shared) { return are_aligned(*shared.loop, vector); });
    };
    while (vector > 1 && !fits()) vector /= 2;
    const std::int64_t slots = is_whole ? (extent.value() + lanes_ * vector - 1) / (lanes_ * vector) : 0;
    for (const Shared& shared : loops) {
      shared.loop->vector = vector;
      if (slots * vector <= most_kept) shared.loop->slots = static_cast<int>(slots);
    }
  }
  static constexpr std::int64_t most_kept = 32;  // values of a lane

  template <class Visit>
  void for_each_place(const Statement& loop, const Visit& visit) const {
    for (const Statement& s : loop.body) {
      if (s.kind == Statement::Kind::store) {
        const KernelStore& store = kernel_.stores[static_cast<std::size_t>(s.store)];
        visit(store.buffer, store.index);
      } else if (s.kind == Statement::Kind::compute && kernel_.expr(s.expr).kind == Expr::Kind::load &&
                 free_[static_cast<std::size_t>(s.expr)].count(loop.variable)) {
        visit(kernel_.expr(s.expr).buffer, kernel_.expr(s.expr).index);
      }
    }
  }
  const KernelBuffer& buffer(int id) const { return kernel_.buffers[static_cast<std::size_t>(id)]; }
  /// Bytes of the narrowest elements that are neighbours in the loop; 0: there are none.
  int narrowest(const Statement& loop) const {
    int bytes = 0;
    for_each_place(loop, [&](int id, const Index& index) {
      if (steps_by_one(index, loop.variable)) bytes = bytes == 0 ? bytes_of(buffer(id)) : std::min(bytes, bytes_of(buffer(id)));
    });
    return bytes;
  }
  bool are_aligned(const Statement& loop, int vector) const {
    bool all = true;
    for_each_place(loop, [&](int id, const Index& index) {
      if (steps_by_one(index, loop.variable)) all = all && is_aligned(buffer(id), index, loop.variable, vector);
    });
    return all;
  }

  const Kernel& kernel_;
  const std::vector<std::set<int>>& free_;
  Scheduled& scheduled_;
  const int lanes_;
  std::map<int, std::vector<Shared>> shared_;  // by variable
};

}  // namespace

void share_loops(const Kernel& kernel, const std::vector<std::set<int>>& free, Scheduled& scheduled) {
  Sharer(kernel, free, scheduled).run();
}

}  // namespace rlx
