// Loops whose steps are added in an order of their own: vectors of accumulators, steps of lanes, and loops that are written out.
#include <algorithm>
#include <utility>

#include "emit/printer.h"
#include "kernel/lanes.h"

namespace rlx {

/// Whole vectors of neighbours, of which each has accumulators of its own, and then what is left.
void KernelPrinter::print_vectors(const Statement& s) {
  const auto [low, high] = range(s.variable);
  std::vector<ExprId> reductions;
  for (const Statement& inner : s.body)
    if (inner.kind == Statement::Kind::accumulate) reductions.push_back(inner.expr);
  for (ExprId id : reductions)
    if (sided_.insert(id).second) declare_variable({id, Kept::Part::side}, s.vector);
  if (!reductions.empty())
    lane_loop(s.vector, [&](const std::string& side) {
      for (ExprId id : reductions) set_variable({id, Kept::Part::side}, side, neutral(kernel_.expr(id)));
    });
  std::string& at = variables_[static_cast<std::size_t>(s.variable)];
  const std::string rest = size_op(SizeOp::remainder, size_op(SizeOp::subtract, high, low), std::to_string(s.vector));
  const std::string whole = size_op(SizeOp::subtract, high, rest);
  loop(low, whole, s.vector, [&](const std::string& first) {
    lane_loop(s.vector, [&](const std::string& side) {
      at = size_op(SizeOp::add, first, side);
      side_ = side;
      print_block(s.body);
      side_.clear();
    });
  });
  loop(whole, high, 1, [&](const std::string& i) {
    at = i;
    print_block(s.body);
  });
  combine_sides(reductions, s.vector);
  if (!runs_.count(s.variable)) finish_reductions(s.variable);
}

/// In pairs, so that no element waits for all that are before it.
void KernelPrinter::combine_sides(const std::vector<ExprId>& reductions, int width) {
  if (reductions.empty()) return;
  for (int half = width / 2; half >= 1; half /= 2)
    lane_loop(half, [&](const std::string& side) {
      const std::string other = size_op(SizeOp::add, side, std::to_string(half));
      for (ExprId id : reductions) {
        const Kept kept{id, Kept::Part::side};
        set_variable(kept, side, joined(kernel_.expr(id), variable(kept, side), variable(kept, other)));
      }
    });
  for (ExprId id : reductions) set(id, joined(kernel_.expr(id), variable(id, ""), variable({id, Kept::Part::side}, "0")));
}

/// How many values of the variable the loop at hand goes through; 0: not known.
std::int64_t KernelPrinter::known_steps(int variable) const {
  if (const auto run = runs_.find(variable); run != runs_.end()) return run->second.steps;
  const Dim& extent = kernel_.extent(variable);
  return extent.is_static() ? extent.value() : 0;
}

/// Several steps for each of the lanes, whose accumulators are then loaded and stored once for all of these. False where that does not pay.
bool KernelPrinter::print_unrolled(const Statement& s) {
  constexpr std::size_t most_statements = 8;
  if (s.body.size() != 1 || s.body[0].kind != Statement::Kind::lanes || s.body[0].body.size() > most_statements) return false;
  const Statement& lanes = s.body[0];
  const bool in_run = runs_.count(s.variable) > 0;
  if (!in_run && (most_written_out() == 0 || added_floats(lanes.body).empty())) return false;
  // Rows that are one block lie behind each other in memory, which is read best in order.
  const int steps = kernel_.extent(lanes.variable).upper() > block_lanes ? 4 : 2;
  const std::int64_t all = known_steps(s.variable);
  if (all < steps) return false;
  const auto [low, high] = range(s.variable);
  const std::string end = all % steps == 0 ? high : std::to_string(all - all % steps);
  loop(low, end, steps, [&](const std::string& first) {
    std::vector<std::string> at{first};
    for (int step = 1; step < steps; ++step) at.push_back(size_op(SizeOp::add, first, std::to_string(step)));
    print_lanes(lanes, [&] {
      print_steps(lanes.body, steps, [&](int step) {
        variables_[static_cast<std::size_t>(s.variable)] = at[static_cast<std::size_t>(step)];
        print_block(lanes.body);
      });
    });
  });
  if (end != high)
    loop(end, high, 1, [&](const std::string& i) {
      variables_[static_cast<std::size_t>(s.variable)] = i;
      print_block(s.body);
    });
  if (!in_run) finish_reductions(s.variable);
  return true;
}

/// A loop of few steps whose sums have the order of the text, so that it is the same in vectors of rows and behind them.
bool KernelPrinter::print_written_out(const Statement& s) {
  constexpr std::size_t most_statements = 64;
  const bool in_run = runs_.count(s.variable) > 0;
  const std::int64_t steps = known_steps(s.variable), most = in_run && most_written_out() > 0 ? apart_run : most_written_out();
  if (steps == 0 || steps > most || s.body.size() > most_statements) return false;
  const bool innermost = std::ranges::all_of(s.body, [](const Statement& inner) { return inner.body.empty(); });
  if (!innermost || added_floats(s.body).empty()) return false;
  const std::string low = range(s.variable).first;
  const bool around = std::exchange(in_order_, true);
  written_out_ = true;
  print_steps(s.body, static_cast<int>(steps), [&](int step) {
    variables_[static_cast<std::size_t>(s.variable)] = sum(low, std::to_string(step));
    print_block(s.body);
  });
  in_order_ = around;
  written_out_ = false;
  if (!in_run) finish_reductions(s.variable);
  return true;
}

/// Whether it is a sum or product of floats, which rounds.
bool KernelPrinter::adds_floats(const Expr& e) {
  return is_float(e.dtype) && (e.reduce == ReduceKind::sum || e.reduce == ReduceKind::prod);
}
std::vector<ExprId> KernelPrinter::added_floats(const Block& body) const {
  std::vector<ExprId> all;
  for (const Statement& s : body)
    if (s.kind == Statement::Kind::accumulate && adds_floats(kernel_.expr(s.expr))) all.push_back(s.expr);
  return all;
}

/// The steps of a loop with this body, of whose sums those of pairs of steps are added, and then those of pairs of pairs.
void KernelPrinter::print_steps(const Block& body, int count, const Step& step) {
  const std::vector<ExprId> reductions = most_written_out() > 0 ? added_floats(body) : std::vector<ExprId>();
  const std::vector<std::string> before = take_accumulators(reductions);
  print_pairs(reductions, 0, count, step);
  add_to_accumulators(reductions, before);
}

void KernelPrinter::print_pairs(const std::vector<ExprId>& reductions, int first, int past, const Step& step) {
  if (past - first == 1) return step(first);
  const int middle = first + (past - first + 1) / 2;
  print_pairs(reductions, first, middle, step);
  const std::vector<std::string> before = take_accumulators(reductions);
  print_pairs(reductions, middle, past, step);
  add_to_accumulators(reductions, before);
}

/// What the accumulators hold, and nothing is in them.
std::vector<std::string> KernelPrinter::take_accumulators(const std::vector<ExprId>& reductions) {
  std::vector<std::string> held;
  for (ExprId id : reductions) {
    const auto [kept, lane] = accumulator(id);
    held.push_back(variable(kept, lane));
    set_variable(kept, lane, neutral(kernel_.expr(id)));
  }
  return held;
}

void KernelPrinter::add_to_accumulators(const std::vector<ExprId>& reductions, const std::vector<std::string>& before) {
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const auto [kept, lane] = accumulator(reductions[i]);
    set_variable(kept, lane, joined(kernel_.expr(reductions[i]), before[i], variable(kept, lane)));
  }
}

}  // namespace rlx
