#include "kernel/lanes.h"

#include <algorithm>
#include <map>

namespace rlx {
namespace {

class LaneSplitter {
 public:
  LaneSplitter(const Kernel& kernel, const std::vector<std::set<int>>& free, int lane, std::set<ExprId>& per_lane)
      : kernel_(kernel), free_(free), lane_(lane), per_lane_(per_lane) {}

  Block split(Block block) {
    Block out, lanes;
    const auto flush = [&] {
      if (!lanes.empty()) out.push_back({Statement::Kind::lanes, -1, lane_, -1, std::exchange(lanes, {})});
    };
    for (Statement& s : block) {
      if (!depends(s)) {
        out.push_back(std::move(s));  // needs nothing of the lanes, so it may run before them
      } else if (holds_loop(s)) {
        flush();
        s.body = split(std::move(s.body));
        out.push_back(std::move(s));
      } else {
        lanes.push_back(std::move(s));
      }
    }
    flush();
    return out;
  }

  /// What is computed in one loop over the lanes and read in another.
  void find_kept(const Block& block) {
    for (const Statement& s : block) {
      if (s.kind == Statement::Kind::lanes) ++segment_;
      if (s.kind == Statement::Kind::begin && depends(s)) per_lane_.insert(s.expr);
      if (s.kind == Statement::Kind::compute || s.kind == Statement::Kind::accumulate) read_operands(kernel_.expr(s.expr));
      if (s.kind == Statement::Kind::store) {
        const KernelStore& store = kernel_.stores[static_cast<std::size_t>(s.store)];
        read(store.value);
        read(store.index);
      }
      if (s.kind == Statement::Kind::compute) computed_in_[s.expr] = segment_;
      find_kept(s.body);
    }
  }

 private:
  static bool holds_loop(const Statement& s) { return s.kind == Statement::Kind::loop || s.kind == Statement::Kind::runs; }
  bool depends(const Statement& s) const {
    if (s.kind == Statement::Kind::store) return true;
    if (!holds_loop(s)) return free_[static_cast<std::size_t>(s.expr)].count(lane_) > 0;
    for (const Statement& inner : s.body)
      if (depends(inner)) return true;
    return false;
  }
  void read_operands(const Expr& e) {
    for (ExprId arg : e.args) read(arg);
    read(e.index);
    for (const Guard& guard : e.guards) read(guard.index);
  }
  void read(const Index& index) {
    index.for_each_atom([&](const Atom& atom) {
      if (atom.kind == Atom::Kind::loaded) read(atom.id);
    });
  }
  void read(ExprId id) {
    if (!free_[static_cast<std::size_t>(id)].count(lane_)) return;
    if (auto it = computed_in_.find(id); it != computed_in_.end() && it->second != segment_) per_lane_.insert(id);
  }

  const Kernel& kernel_;
  const std::vector<std::set<int>>& free_;
  int lane_;
  std::set<ExprId>& per_lane_;
  std::map<ExprId, int> computed_in_;
  int segment_ = 0;
};

Dim coefficient(const Index& index, int variable) {
  for (const Index::Term& term : index.terms())
    if (term.atom->kind == Atom::Kind::variable && term.atom->id == variable) return term.coefficient;
  return 0;
}

/// What is read along the innermost loop, and along the terms of the reductions inside it.
struct Reads {
  std::set<int> terms;  // variables
  int along_lanes = 0, along_terms = 0;
};

Reads reads_of(const Kernel& kernel, const std::vector<std::set<int>>& free) {
  Reads reads;
  const int lane = kernel.loops.back();
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i)
    if (kernel.exprs[i].kind == Expr::Kind::reduce && free[i].count(lane)) reads.terms.insert(kernel.exprs[i].variables.back());
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    if (kernel.exprs[i].kind != Expr::Kind::load) continue;
    for (int v : reads.terms) {
      if (!free[i].count(v) || !free[i].count(lane)) continue;  // what all lanes share is read once
      reads.along_lanes += coefficient(kernel.exprs[i].index, lane) == Dim(1);
      reads.along_terms += coefficient(kernel.exprs[i].index, v) == Dim(1);
    }
  }
  return reads;
}

bool can_block(const Kernel& kernel, std::int64_t fewest_lanes) {
  if (kernel.tile || kernel.loops.empty()) return false;
  return kernel.extent(kernel.loops.back()).upper() >= fewest_lanes && !is_reduced(kernel, kernel.loops.back());
}

/// How many of a kernel's loads and stores are of neighbours along its innermost loop, less those that are apart.
int neighbours(const Kernel& kernel, const std::vector<std::set<int>>& free) {
  const int lane = kernel.loops.back();
  int balance = 0;
  const auto place = [&](const Index& index) { balance += coefficient(index, lane) == Dim(1) ? 1 : -1; };
  for (const KernelStore& store : kernel.stores) place(store.index);
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i)
    if (kernel.exprs[i].kind == Expr::Kind::load && free[i].count(lane)) place(kernel.exprs[i].index);
  return balance;
}

}  // namespace

bool worth_blocks(const Kernel& kernel, const std::vector<std::set<int>>& free) {
  constexpr std::int64_t fewest_lanes = 8;
  if (!can_block(kernel, fewest_lanes)) return false;
  const Reads reads = reads_of(kernel, free);
  return reads.along_lanes > reads.along_terms;
}

bool worth_vectors(const Kernel& kernel, const std::vector<std::set<int>>& free, int width) {
  if (width == 1 || !can_block(kernel, width)) return false;
  const Reads reads = reads_of(kernel, free);
  const bool is_few = std::ranges::all_of(reads.terms, [&](int v) { return kernel.extent(v).upper() < width; });
  if (!reads.terms.empty()) return reads.along_lanes > reads.along_terms || (is_few && reads.along_lanes == reads.along_terms);
  const bool reduces = std::ranges::any_of(kernel.exprs, [](const Expr& e) { return e.kind == Expr::Kind::reduce; });
  return !reduces && kernel.loops.size() > 1 && neighbours(kernel, free) > 0;
}

int neighbours_along_terms(const Kernel& kernel, const std::vector<std::set<int>>& free) {
  const Reads reads = reads_of(kernel, free);
  return reads.along_terms - reads.along_lanes;
}

bool steps_by_one(const Index& index, int variable) {
  int places = 0;
  index.for_each_atom([&](const Atom& atom) { places += atom.kind == Atom::Kind::variable && atom.id == variable; });
  return places == 1 && coefficient(index, variable) == Dim(1);
}

namespace {

/// How many of the loads and stores of a loop are of neighbours, less those that are apart.
int neighbours(const Kernel& kernel, const std::vector<std::set<int>>& free, const Statement& loop) {
  int balance = 0;
  const auto place = [&](const Index& index, bool moves) {
    if (moves) balance += coefficient(index, loop.variable) == Dim(1) ? 1 : -1;
  };
  for (const Statement& s : loop.body) {
    if (s.kind == Statement::Kind::store) place(kernel.stores[static_cast<std::size_t>(s.store)].index, true);
    if (s.kind != Statement::Kind::compute || kernel.expr(s.expr).kind != Expr::Kind::load) continue;
    place(kernel.expr(s.expr).index, free[static_cast<std::size_t>(s.expr)].count(loop.variable) > 0);
  }
  return balance;
}

}  // namespace

bool lies_apart(const Kernel& kernel, const Statement& loop) {
  return std::ranges::any_of(loop.body, [&](const Statement& s) {
    if (s.kind != Statement::Kind::compute || kernel.expr(s.expr).kind != Expr::Kind::load) return false;
    const Dim step = coefficient(kernel.expr(s.expr).index, loop.variable);
    return step != Dim(0) && step != Dim(1) && step != Dim(-1);
  });
}

void mark_vectors(const Kernel& kernel, const std::vector<std::set<int>>& free, int width, Block& body) {
  for (Statement& s : body) {
    mark_vectors(kernel, free, width, s.body);
    const bool innermost = std::ranges::all_of(s.body, [](const Statement& inner) { return inner.body.empty(); });
    if (s.kind != Statement::Kind::loop || !innermost || kernel.extent(s.variable).upper() < 2 * width) continue;
    if (neighbours(kernel, free, s) > 0) s.vector = width;
  }
}

Block split_lanes(const Kernel& kernel, const std::vector<std::set<int>>& free, int lane, Block body, std::set<ExprId>& per_lane) {
  LaneSplitter splitter(kernel, free, lane, per_lane);
  Block result = splitter.split(std::move(body));
  splitter.find_kept(result);
  return result;
}

}  // namespace rlx
