#include "kernel/rows.h"

#include <algorithm>

namespace rlx {
namespace {

class RowKeeper {
 public:
  RowKeeper(const Kernel& kernel, Scheduled& scheduled) : kernel_(kernel), scheduled_(scheduled) {}

  void visit(Block& block) {
    std::map<int, std::set<ExprId>> left;  // by variable: what earlier loops of this block computed
    for (Statement& s : block) {
      visit(s.body);
      Statement* const loop = row_loop(s);
      if (!loop || !has_places(*loop)) continue;
      std::set<ExprId>& earlier = left[loop->variable];
      keep(*loop, earlier);
      for (const Statement& inner : loop->body)
        if (inner.kind == Statement::Kind::compute) earlier.insert(inner.expr);
    }
  }

 private:
  /// A loop over a whole row, also where it is cut into runs.
  static Statement* row_loop(Statement& s) {
    if (s.kind == Statement::Kind::loop) return &s;
    if (s.kind != Statement::Kind::runs) return nullptr;
    return &*std::ranges::find(s.body, Statement::Kind::loop, &Statement::kind);
  }
  /// Whether what it leaves has somewhere to be: a row beside a lane that works alone, few values in registers of one of a group.
  bool has_places(const Statement& loop) const { return in_group_ ? loop.slots > 0 : kernel_.extent(loop.variable).upper() <= on_chip_row; }
  /// Marks the values of this loop that are dear, were left by an earlier loop, and are read by something new.
  void keep(Statement& loop, const std::set<ExprId>& earlier) {
    std::set<ExprId> again;
    for (const Statement& s : loop.body)
      if (s.kind == Statement::Kind::compute && earlier.count(s.expr)) again.insert(s.expr);
    if (again.empty()) return;
    std::set<ExprId> read;
    find_read(loop.body, again, read);
    for (Statement& s : loop.body) {
      if (s.kind != Statement::Kind::compute || !again.count(s.expr)) continue;
      const bool worth = read.count(s.expr) && scheduled_.per_row.size() < most_rows && steps(s.expr, again) >= fewest_steps_;
      if (worth) scheduled_.per_row[s.expr] = loop.variable;
      s.kept = scheduled_.per_row.count(s.expr) > 0;
    }
  }
  /// What of `again` is read by statements that are not.
  void find_read(const Block& block, const std::set<ExprId>& again, std::set<ExprId>& read) const {
    const auto reads = [&](ExprId id) {
      if (again.count(id)) read.insert(id);
    };
    for (const Statement& s : block) {
      find_read(s.body, again, read);
      if (s.kind == Statement::Kind::store) {
        const KernelStore& store = kernel_.stores[static_cast<std::size_t>(s.store)];
        reads(store.value);
        for (ExprId id : loaded_exprs(store.index)) reads(id);
      } else if (s.expr >= 0 && !again.count(s.expr) && s.kind != Statement::Kind::begin) {
        for_each_operand(kernel_.expr(s.expr), reads);
      }
    }
  }
  /// How many values of `again` the value is computed from, up to those that are kept.
  std::size_t steps(ExprId id, const std::set<ExprId>& again) const {
    return needed_by(kernel_, id, [&](ExprId operand) { return again.count(operand) && !scheduled_.per_row.count(operand); }).size();
  }

  static constexpr std::size_t most_rows = 4;  // of `on_chip_row` elements, on the stack of a thread
  const Kernel& kernel_;
  Scheduled& scheduled_;
  const bool in_group_ = scheduled_.group.lanes > 0;
  const std::size_t fewest_steps_ = in_group_ ? 1 : 8;  // about what a store and a load in the first-level cache cost
};

}  // namespace

void keep_rows(const Kernel& kernel, Scheduled& scheduled) { RowKeeper(kernel, scheduled).visit(scheduled.body); }

}  // namespace rlx
