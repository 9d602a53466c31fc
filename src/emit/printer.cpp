#include "emit/printer.h"

#include <algorithm>

namespace rlx {

// -- sizes and indices

std::string KernelPrinter::symbol(const std::string& name) {
  const auto it = std::find(kernel_.symbols.begin(), kernel_.symbols.end(), name);
  if (it == kernel_.symbols.end()) fail_internal("emit: symbol '{}' is not a parameter of the kernel", name);
  return size_argument(static_cast<std::size_t>(it - kernel_.symbols.begin()));
}

std::string KernelPrinter::sum(const std::string& a, const std::string& b) {
  if (a == "0") return b;
  if (b == "0") return a;
  return size_op(SizeOp::add, a, b);
}

std::string KernelPrinter::times(const std::string& a, const std::string& b) {
  if (a == "1") return b;
  if (b == "1") return a;
  return size_op(SizeOp::multiply, a, b);
}

/// A quotient or remainder; one by a size of 0 stands in a loop that never runs.
std::string KernelPrinter::divided(SizeOp op, const std::string& a, const std::string& b) { return b == "0" ? "0" : size_op(op, a, b); }

std::string KernelPrinter::dim(const Dim& d) {
  if (d.is_static()) return std::to_string(d.value());
  const std::string key = d.to_string();
  if (auto it = dims_.find(key); it != dims_.end()) return it->second;
  std::string total = "0";
  std::swap(body_, entry_);
  for (const Dim::Term& term : d.terms()) {
    std::string product = std::to_string(term.coefficient);
    for (const auto& s : term.symbols) product = times(product, symbol(s->name));
    total = sum(total, product);
  }
  std::swap(body_, entry_);
  return dims_[key] = total;
}

std::string KernelPrinter::index(const Index& i) {
  std::string total = dim(i.constant());
  for (const Index::Term& term : i.terms()) {
    const std::string factor = dim(term.coefficient);
    total = sum(total, times(atom(*term.atom), factor));
  }
  return total;
}

std::string KernelPrinter::atom(const Atom& a) {
  if (a.kind == Atom::Kind::variable) return variables_[static_cast<std::size_t>(a.id)];
  if (a.kind == Atom::Kind::loaded) return loaded(a);
  const std::string denominator = dim(a.denominator);
  return divided(a.kind == Atom::Kind::quotient ? SizeOp::divide : SizeOp::remainder, index(*a.numerator), denominator);
}

std::string KernelPrinter::guards(const std::vector<Guard>& list) {
  std::string all;
  for (const Guard& guard : list) {
    const std::string one = test(guard.kind, index(guard.index));
    all = all.empty() ? one : both(all, one);
  }
  return all;
}

// -- statements

void KernelPrinter::print_block(const Block& block) {
  for (const Statement& statement : block) print(statement);
}

void KernelPrinter::print(const Statement& s) {
  switch (s.kind) {
    case Statement::Kind::compute:
      if (kernel_.expr(s.expr).kind == Expr::Kind::load) stored_ = false;
      print_compute(s);
      break;
    case Statement::Kind::begin: begin(s.expr); break;
    case Statement::Kind::restart: set(s.expr, neutral(kernel_.expr(s.expr))); break;
    case Statement::Kind::carry: carry(s.expr); break;
    case Statement::Kind::runs: print_runs(s); break;
    case Statement::Kind::accumulate: {
      const auto [kept, lane] = accumulator(s.expr);
      set_variable(kept, lane, combined(kernel_.expr(s.expr), variable(kept, lane)));
      if (std::ranges::find(open_reductions_, s.expr) == open_reductions_.end()) open_reductions_.push_back(s.expr);
      break;
    }
    case Statement::Kind::store: print_store(s.store); break;
    case Statement::Kind::loop: print_loop(s); break;
    case Statement::Kind::blocks: print_blocks(s); break;
    case Statement::Kind::lanes:
      if (s.vector > 1) print_neighbours(s, std::string(variables_[static_cast<std::size_t>(s.variable)]), "0");
      else print_lanes(s, [&] { print_block(s.body); });
      break;
  }
}

void KernelPrinter::print_store(int number) {
  const KernelStore& s = kernel_.stores[static_cast<std::size_t>(number)];
  if (const auto place = put_off_.find(number); place != put_off_.end()) set_element(s, place->second, side_of_group_);
  else if (scheduled_.group.lanes > 0 && !in_shared_) store_of_group(s);
  else store(s);
}

void KernelPrinter::print_blocks(const Statement& s) {
  const auto [low, high] = range(s.variable);
  const int lanes = scheduled_.block_lanes;
  for (ExprId id : scheduled_.per_lane) declare(id, lanes);
  const LoopBody block = [&, &past_all = high](const std::string& first) {
    const std::string past = size_op(SizeOp::add, first, std::to_string(lanes));
    block_range_ = {first, size_op(SizeOp::min, past, past_all)};
    print_block(s.body);
  };
  const bool in_grid = !scheduled_.grid.empty() && scheduled_.grid.back().loop == s.variable;
  if (in_grid) block(variables_[static_cast<std::size_t>(s.variable)]);
  else loop(low, high, lanes, block);
}

void KernelPrinter::print_compute(const Statement& s) {
  std::string& text = values_[static_cast<std::size_t>(s.expr)];
  const auto row = scheduled_.per_row.find(s.expr);
  const bool in_group = scheduled_.group.lanes > 0;
  const std::string at = row == scheduled_.per_row.end() ? lane_ : in_group ? slot_ : variables_[static_cast<std::size_t>(row->second)];
  const auto vector = loaded_vectors_.find(s.expr);
  if (s.kept) text = variable(s.expr, at);
  else text = vector == loaded_vectors_.end() ? compute(s.expr) : element_of(s.expr, vector->second, side_of_group_);
  if (s.kept || (row == scheduled_.per_row.end() && !per_lane(s.expr))) return;
  if (row != scheduled_.per_row.end() && declared_.insert(s.expr).second)
    declare_variable(s.expr, in_group ? slots_ : kernel_.extent(row->second).upper());
  set_variable(s.expr, at, text);
}

void KernelPrinter::print_loop(const Statement& s) {
  if (together_.count(s.variable)) return print_block(s.body);
  if (s.shared > 0) return print_shared(s);
  if (s.dots) return print_dots(s);
  if (print_unrolled(s) || print_written_out(s)) return;
  if (s.vector > 1) return print_vectors(s);
  const auto [low, high] = range(s.variable);
  const LoopBody body = [&](const std::string& i) {
    variables_[static_cast<std::size_t>(s.variable)] = i;
    print_block(s.body);
  };
  const bool innermost = std::ranges::all_of(s.body, [](const Statement& inner) { return inner.body.empty(); });
  constexpr std::int64_t short_loop = 16;
  const Dim& extent = kernel_.extent(s.variable);
  if (in_shared_ && innermost && !runs_.count(s.variable) && extent.is_static() && extent.value() <= short_loop) return print_short_loop(s);
  const std::string cut = innermost ? cut_of_loop(low, high) : std::string();
  if (!cut.empty()) loop(low, cut, 1, body);
  loop(cut.empty() ? low : cut, high, 1, body);
  if (!runs_.count(s.variable)) finish_reductions(s.variable);
}

std::pair<KernelPrinter::Kept, std::string> KernelPrinter::accumulator(ExprId id) const {
  if (!side_.empty()) return {{id, Kept::Part::side}, side_};
  return {id, per_lane(id) ? lane_ : ""};
}

void KernelPrinter::print_runs(const Statement& s) {
  const auto [low, high] = range(s.variable);
  const Dim& extent = kernel_.extent(s.variable);
  const std::string steps = std::to_string(s.steps);
  const std::int64_t rest = s.whole > 0 && extent.is_static() ? extent.value() % s.whole : -1;  // -1: not known
  std::string end = high;                                                                       // of the whole runs
  if (rest > 0) end = std::to_string(extent.value() - rest);
  else if (rest < 0 && s.whole > 0) end = size_op(SizeOp::subtract, high, size_op(SizeOp::remainder, high, std::to_string(s.whole)));
  if (end == steps) {
    print_run(s, low, end, true);
  } else {
    loop(low, end, s.steps, [&](const std::string& first) {
      const std::string past = size_op(SizeOp::add, first, steps);
      const bool exact = s.whole == s.steps;
      print_run(s, first, exact ? past : size_op(SizeOp::min, past, end), exact);
    });
  }
  if (s.whole > 0 && rest != 0) print_run(s, end, high, false);
  finish_reductions(s.variable);
}

void KernelPrinter::print_run(const Statement& s, const std::string& low, const std::string& high, bool whole) {
  runs_[s.variable] = {low, high, whole ? s.steps : 0};
  print_block(s.body);
  runs_.erase(s.variable);
}

void KernelPrinter::print_lanes(const Statement& s, const std::function<void()>& body) {
  const auto& [first, past] = block_range_;
  const auto at_lane = [&](const std::string& i, const std::string& lane) {
    variables_[static_cast<std::size_t>(s.variable)] = i;
    lane_ = lane;
    for (ExprId id : scheduled_.per_lane) values_[static_cast<std::size_t>(id)].clear();
    const bool around = std::exchange(in_order_, true);
    body();
    in_order_ = around;
  };
  const Dim& extent = kernel_.extent(s.variable);
  const int lanes = scheduled_.block_lanes;
  if (lanes != block_lanes && extent.is_static() && extent.value() % lanes == 0)
    return lane_loop(lanes, [&](const std::string& lane) { at_lane(size_op(SizeOp::add, first, lane), lane); });
  lane_loop(first, past, lanes, [&](const std::string& i) { at_lane(i, size_op(SizeOp::subtract, i, first)); });
}

/// What an earlier loop over the lanes left is read when it is first asked for.
const std::string& KernelPrinter::value(ExprId id) {
  std::string& text = values_[static_cast<std::size_t>(id)];
  if (text.empty() && per_lane(id)) text = reduced(id);
  return text;
}

void KernelPrinter::declare(ExprId id, std::int64_t elements) {
  declare_variable(id, elements);
  if (!in_runs(id)) return;
  declare_variable({id, Kept::Part::total}, elements);
  declare_variable({id, Kept::Part::lost}, elements);
}

void KernelPrinter::begin(ExprId id) {
  if (!per_lane(id) && declared_.insert(id).second) declare(id, 1);
  const std::string start = neutral(kernel_.expr(id));
  if (!in_runs(id)) return set(id, start);
  set({id, Kept::Part::total}, start);
  set({id, Kept::Part::lost}, start);
}

void KernelPrinter::set(const Kept& kept, const std::string& value) { set_variable(kept, per_lane(kept.expr) ? lane_ : "", value); }

/// Adds a run to the total. What that rounds off is a number of the same type (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B).
void KernelPrinter::carry(ExprId id) {
  const Kept total{id, Kept::Part::total}, lost{id, Kept::Part::lost};
  const std::string lane = per_lane(id) ? lane_ : "";
  const auto add = [&](const std::string& a, const std::string& b) { return rounded(ScalarOp::add, a, b, kernel_.expr(id).dtype); };
  const auto sub = [&](const std::string& a, const std::string& b) { return rounded(ScalarOp::sub, a, b, kernel_.expr(id).dtype); };
  const std::string before = variable(total, lane), run = variable(id, lane);
  const std::string after = add(before, run), added = sub(after, before);
  const std::string rest = add(sub(before, sub(after, added)), sub(run, added));
  set(total, after);
  set(lost, add(variable(lost, lane), rest));
}

/// The value of a reduction behind its loops. Where a total is infinite, nothing is known of what was lost.
std::string KernelPrinter::reduced(ExprId id) {
  const std::string lane = per_lane(id) ? lane_ : "";
  const bool is_part = scheduled_.group.parts.count(id) > 0;
  const Expr& e = kernel_.expr(id);
  if (!in_runs(id)) return is_part ? combined_over_group(e, variable(id, lane)) : variable(id, lane);
  const std::string total = variable({id, Kept::Part::total}, lane), lost = variable({id, Kept::Part::lost}, lane);
  const std::string all = unless_nan(rounded(ScalarOp::add, total, lost, e.dtype), total, e.dtype);
  return is_part ? combined_over_group(e, all) : all;
}

std::pair<std::string, std::string> KernelPrinter::range(int variable) {
  if (kernel_.tile) {
    const auto it = std::find(kernel_.loops.begin(), kernel_.loops.end(), variable);
    if (it != kernel_.loops.end()) {
      const std::size_t at = kernel_.symbols.size() + 2 * static_cast<std::size_t>(variable);  // whatever the order of the loops
      std::string low = size_argument(at);
      return {std::move(low), size_argument(at + 1)};
    }
  }
  if (auto it = runs_.find(variable); it != runs_.end()) return {it->second.low, it->second.high};
  if (variable == scheduled_.split) return split_range_;
  return {"0", dim(kernel_.extent(variable))};
}

/// After the outermost loop of a reduction its accumulator is its value.
void KernelPrinter::finish_reductions(int variable) {
  std::erase_if(open_reductions_, [&](ExprId id) {
    if (kernel_.expr(id).variables.front() != variable) return false;
    if (!per_lane(id)) values_[static_cast<std::size_t>(id)] = reduced(id);
    return true;
  });
}

void KernelPrinter::print_body(const std::string& begin, const std::string& end) {
  split_range_ = {begin, end};
  if (kernel_.tile || scheduled_.split >= 0) return print_block(scheduled_.body);
  loop(begin, end, 1, [&](const std::string& flat) { print_position(flat); });
}

void KernelPrinter::print_position(const std::string& flat) {
  const std::vector<GridLoop> grid = scheduled_.counted();
  std::string rest = flat;
  for (std::size_t g = grid.size(); g-- > 0;) {
    const auto [loop, step] = grid[g];
    std::string at = rest;
    if (g > 0) {
      const std::string extent = runs(dim(kernel_.extent(loop)), step);
      at = divided(SizeOp::unsigned_remainder, rest, extent);
      rest = divided(SizeOp::unsigned_divide, rest, extent);
    }
    variables_[static_cast<std::size_t>(loop)] = times(at, std::to_string(step));
  }
  if (scheduled_.group.rows > 1) take_row_of_group();
  if (scheduled_.product) return print_product(*scheduled_.product);
  print_block(scheduled_.body);
}

/// How many runs of up to `step` a size is.
std::string KernelPrinter::runs(const std::string& size, int step) {
  if (step == 1) return size;
  return size_op(SizeOp::unsigned_divide, size_op(SizeOp::add, size, std::to_string(step - 1)), std::to_string(step));
}

}  // namespace rlx
