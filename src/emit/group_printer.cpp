// How the lanes of a group share a position.
#include <algorithm>

#include "emit/printer.h"
#include "kernel/groups.h"
#include "kernel/lanes.h"

namespace rlx {

/// Lanes whose row is behind the last one compute that again, as all must exchange and wait, and store nothing.
void KernelPrinter::take_row_of_group() {
  const int loop = scheduled_.grid.back().loop;
  std::string& at = variables_[static_cast<std::size_t>(loop)];
  const std::string extent = dim(kernel_.extent(loop));
  const int step = kernel_.variables[static_cast<std::size_t>(loop)].step;
  const std::string row = computed(sum(at, times(group_row(), std::to_string(step))), index_type());
  own_row_ = less(row, extent);
  at = computed(size_op(SizeOp::min, row, size_op(SizeOp::subtract, extent, std::to_string(step))), index_type());
}

/// A loop whose values the lanes share. What each lane has is the same in all loops over a variable.
void KernelPrinter::print_shared(const Statement& s) {
  in_shared_ = true;
  stored_ = false;
  const auto body = [&] {
    if (s.shared > 1) return print_counted_together(s);
    const auto [low, high] = range(s.variable);
    const int lanes = scheduled_.group.lanes;
    const std::string lane = group_lane(), vector = std::to_string(s.vector);
    if (s.slots > 0) {
      slots_ = std::int64_t{s.slots} * s.vector;
      const bool fills = kernel_.extent(s.variable).value() % (lanes * s.vector) == 0;
      lane_loop(s.slots, [&](const std::string& slot) {
        const std::string number = size_op(SizeOp::add, size_op(SizeOp::multiply, slot, std::to_string(lanes)), lane);
        const std::string first = computed(times(number, vector), index_type());
        if (fills) return print_neighbours(s, first, slot);
        only_if(less(first, high), [&] { print_neighbours(s, first, slot); });
      });
      return;
    }
    std::string whole = high;
    if (s.vector > 1) whole = size_op(SizeOp::subtract, high, size_op(SizeOp::remainder, size_op(SizeOp::subtract, high, low), vector));
    loop(sum(low, times(lane, vector)), whole, lanes * s.vector, [&](const std::string& first) { print_neighbours(s, first, "0"); });
    const Dim& extent = kernel_.extent(s.variable);
    if (s.vector == 1 || (extent.is_static() && extent.value() % s.vector == 0)) return;
    loop(sum(whole, lane), high, lanes, [&](const std::string& i) {
      variables_[static_cast<std::size_t>(s.variable)] = i;
      print_block(s.body);
    });
  };
  const bool stores = std::ranges::any_of(s.body, [](const Statement& inner) { return inner.kind == Statement::Kind::store; });
  if (stores && !own_row_.empty()) only_if(own_row_, body);
  else body();
  in_shared_ = false;
  if (!runs_.count(s.variable)) finish_reductions(s.variable);
}

/// A vector from `first` on. All is loaded before anything is stored, so that loads of neighbours can be one.
void KernelPrinter::print_neighbours(const Statement& s, const std::string& first, const std::string& slot) {
  std::string& at = variables_[static_cast<std::size_t>(s.variable)];
  if (s.vector == 1) {
    at = first;
    slot_ = slot;
    return print_block(s.body);
  }
  at = first;
  find_vectors(s);
  lane_loop(s.vector, [&](const std::string& side) {
    at = size_op(SizeOp::add, first, side);
    side_of_group_ = side;
    slot_ = size_op(SizeOp::add, times(slot, std::to_string(s.vector)), side);
    print_block(s.body);
  });
  at = first;
  for (const auto& [number, vector] : std::exchange(put_off_, {}))
    store_vector(kernel_.stores[static_cast<std::size_t>(number)], vector, s.vector);
  loaded_vectors_.clear();
}

/// What of the vector at hand is one in memory, which is loaded here, and what becomes one. What no lane may read is loaded alone.
void KernelPrinter::find_vectors(const Statement& s) {
  const auto is_vector = [&](const Index& index) { return loaded_exprs(index).empty() && steps_by_one(index, s.variable); };
  for (const Statement& inner : s.body) {
    if (inner.kind == Statement::Kind::store) {
      const KernelStore& store = kernel_.stores[static_cast<std::size_t>(inner.store)];
      if (is_vector(store.index)) put_off_[inner.store] = vector_to_store(store, s.vector);
    } else if (inner.kind == Statement::Kind::compute && kernel_.expr(inner.expr).kind == Expr::Kind::load && !inner.kept &&
               !scheduled_.guarded_loads.count(inner.expr) && is_vector(kernel_.expr(inner.expr).index)) {
      const Expr& e = kernel_.expr(inner.expr);
      loaded_vectors_[inner.expr] = load_vector(inner.expr, s.vector, aligned_bytes(buffer(e.buffer), e.index, s.variable));
    }
  }
}

/// A loop of a few neighbours, written out. What is one vector in memory, or some, is loaded before it.
void KernelPrinter::print_short_loop(const Statement& s) {
  std::string& at = variables_[static_cast<std::size_t>(s.variable)];
  const auto count = static_cast<int>(kernel_.extent(s.variable).value());
  at = std::to_string(0);
  std::vector<ExprId> loaded;
  for (const Statement& inner : s.body) {
    if (inner.kind != Statement::Kind::compute || kernel_.expr(inner.expr).kind != Expr::Kind::load) continue;
    const Expr& e = kernel_.expr(inner.expr);
    const int piece = aligned_bytes(buffer(e.buffer), e.index, s.variable), bytes = std::max(1, info(e.dtype).bits / 8);
    if (scheduled_.guarded_loads.count(inner.expr) || !loaded_exprs(e.index).empty() || !steps_by_one(e.index, s.variable)) continue;
    if (piece == bytes || count * bytes % piece != 0) continue;
    loaded_vectors_[inner.expr] = load_vector(inner.expr, count, piece);
    loaded.push_back(inner.expr);
  }
  const std::string side = side_of_group_;
  lane_loop(count, [&](const std::string& i) {
    at = i;
    side_of_group_ = i;
    print_block(s.body);
  });
  side_of_group_ = side;
  for (const ExprId id : loaded) loaded_vectors_.erase(id);
  finish_reductions(s.variable);
}

/// Loops inside each other whose values are counted as one.
void KernelPrinter::print_counted_together(const Statement& s) {
  std::vector<int> variables{s.variable};
  const Statement* inner = &s;
  while (static_cast<int>(variables.size()) < s.shared) {
    inner = &*std::ranges::find_if(inner->body.rbegin(), inner->body.rend(),
                                   [](const Statement& next) { return next.kind == Statement::Kind::loop; });
    variables.push_back(inner->variable);
  }
  std::int64_t count = 1;
  for (const int v : variables) count *= kernel_.extent(v).value();
  loop(group_lane(), std::to_string(count), scheduled_.group.lanes, [&](const std::string& number) {
    std::string rest = number;
    for (std::size_t i = variables.size(); i-- > 0;) {
      const std::string extent = std::to_string(kernel_.extent(variables[i]).value());
      variables_[static_cast<std::size_t>(variables[i])] = i == 0 ? rest : size_op(SizeOp::unsigned_remainder, rest, extent);
      rest = size_op(SizeOp::unsigned_divide, rest, extent);
    }
    together_.insert(variables.begin() + 1, variables.end());
    print_block(s.body);
    together_.clear();
  });
}

/// By one lane, when all have read what may lie where it stores.
void KernelPrinter::store_of_group(const KernelStore& s) {
  if (!stored_) wait_for_group();
  stored_ = true;
  const std::string first = test(Guard::Kind::zero, group_lane());
  only_if(own_row_.empty() ? first : both(first, own_row_), [&] { store(s); });
}

/// The values of all lanes, in one order: first of the lanes of a warp, then of the warps. Each lane then has it.
std::string KernelPrinter::combined_over_group(const Expr& reduction, std::string value) {
  const auto over = [&](int lanes) {
    for (int bits = lanes / 2; bits > 0; bits /= 2) {
      const std::string mine = computed(value, reduction.dtype);
      const std::string other = computed(exchanged(mine, bits), reduction.dtype);
      value = computed(joined(reduction, mine, other), reduction.dtype);
    }
  };
  over(warp_lanes);
  const int warps = scheduled_.group.lanes / warp_lanes;
  if (warps == 1) return value;
  value = share(value, reduction.dtype, warps);
  over(warps);
  return value;
}

}  // namespace rlx
