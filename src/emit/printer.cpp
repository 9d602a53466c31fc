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
  if (a.kind == Atom::Kind::loaded) return value(a.id);
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
    case Statement::Kind::compute: print_compute(s); break;
    case Statement::Kind::begin: set(s.expr, neutral(kernel_.expr(s.expr))); break;
    case Statement::Kind::accumulate: {
      const std::string lane = per_lane(s.expr) ? lane_ : "";
      set_variable(s.expr, lane, combined(kernel_.expr(s.expr), variable(s.expr, lane)));
      open_reductions_.push_back(s.expr);
      break;
    }
    case Statement::Kind::store: store(kernel_.stores[static_cast<std::size_t>(s.store)]); break;
    case Statement::Kind::loop: print_loop(s); break;
    case Statement::Kind::blocks: {
      const auto [low, high] = range(s.variable);
      for (ExprId id : scheduled_.per_lane) declare_variable(id, block_lanes);
      loop(low, high, block_lanes, [&](const std::string& first) {
        const std::string past = size_op(SizeOp::add, first, std::to_string(block_lanes));
        block_range_ = {first, size_op(SizeOp::min, past, high)};
        print_block(s.body);
      });
      break;
    }
    case Statement::Kind::lanes: print_lanes(s); break;
  }
}

void KernelPrinter::print_compute(const Statement& s) {
  std::string& text = values_[static_cast<std::size_t>(s.expr)];
  const auto row = scheduled_.per_row.find(s.expr);
  const std::string at = row == scheduled_.per_row.end() ? lane_ : variables_[static_cast<std::size_t>(row->second)];
  text = s.kept ? variable(s.expr, at) : compute(s.expr);
  if (s.kept || (row == scheduled_.per_row.end() && !per_lane(s.expr))) return;
  if (row != scheduled_.per_row.end() && declared_.insert(s.expr).second) declare_variable(s.expr, kernel_.extent(row->second).upper());
  set_variable(s.expr, at, text);
}

void KernelPrinter::print_loop(const Statement& s) {
  const auto [low, high] = range(s.variable);
  const LoopBody body = [&](const std::string& i) {
    variables_[static_cast<std::size_t>(s.variable)] = i;
    print_block(s.body);
  };
  const bool innermost = std::ranges::all_of(s.body, [](const Statement& inner) { return inner.body.empty(); });
  const std::string cut = innermost ? cut_of_loop(low, high) : std::string();
  if (!cut.empty()) loop(low, cut, 1, body);
  loop(cut.empty() ? low : cut, high, 1, body);
  finish_reductions(s.variable);
}

void KernelPrinter::print_lanes(const Statement& s) {
  loop(block_range_.first, block_range_.second, 1, [&](const std::string& i) {
    variables_[static_cast<std::size_t>(s.variable)] = i;
    lane_ = size_op(SizeOp::subtract, i, block_range_.first);
    for (ExprId id : scheduled_.per_lane) values_[static_cast<std::size_t>(id)].clear();
    print_block(s.body);
  });
}

/// What an earlier loop over the lanes left is read when it is first asked for.
const std::string& KernelPrinter::value(ExprId id) {
  std::string& text = values_[static_cast<std::size_t>(id)];
  if (text.empty() && per_lane(id)) text = variable(id, lane_);
  return text;
}

void KernelPrinter::set(ExprId id, const std::string& value) {
  if (!per_lane(id) && declared_.insert(id).second) declare_variable(id, 1);
  set_variable(id, per_lane(id) ? lane_ : "", value);
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
  if (variable == scheduled_.split) return split_range_;
  return {"0", dim(kernel_.extent(variable))};
}

/// After the outermost loop of a reduction its accumulator is its value.
void KernelPrinter::finish_reductions(int variable) {
  std::erase_if(open_reductions_, [&](ExprId id) {
    if (kernel_.expr(id).variables.front() != variable) return false;
    if (!per_lane(id)) values_[static_cast<std::size_t>(id)] = this->variable(id, "");
    return true;
  });
}

void KernelPrinter::print_body(const std::string& begin, const std::string& end) {
  split_range_ = {begin, end};
  if (kernel_.tile || scheduled_.split >= 0) return print_block(scheduled_.body);
  loop(begin, end, 1, [&](const std::string& flat) {
    std::string rest = flat;
    for (std::size_t g = scheduled_.grid.size(); g-- > 0;) {
      std::string& variable = variables_[static_cast<std::size_t>(scheduled_.grid[g])];
      if (g == 0) {
        variable = rest;
        break;
      }
      const std::string extent = dim(kernel_.extent(scheduled_.grid[g]));
      variable = divided(SizeOp::unsigned_remainder, rest, extent);
      rest = divided(SizeOp::unsigned_divide, rest, extent);
    }
    print_block(scheduled_.body);
  });
}

}  // namespace rlx
