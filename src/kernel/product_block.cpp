#include "kernel/product_block.h"

#include <algorithm>
#include <bit>

#include "kernel/cost.h"
#include "kernel/lanes.h"
#include "kernel/runs.h"

namespace rlx {
namespace {

class Finder {
 public:
  Finder(const Kernel& kernel, const std::vector<std::set<int>>& free, int width) : kernel_(kernel), free_(free), width_(width) {}

  std::optional<ProductBlock> find() const {
    if (kernel_.tile || kernel_.loops.empty()) return std::nullopt;
    ProductBlock block;
    block.column = kernel_.loops.back();
    for (const ExprId id : reductions())
      if (!add_sum(block, id)) return std::nullopt;
    return !block.sums.empty() && choose_sizes(block) ? std::optional(block) : std::nullopt;
  }

 private:
  std::set<ExprId> reductions() const {
    std::set<ExprId> found;
    const auto need = [&](ExprId root) {
      for (const ExprId id : needed_by(kernel_, root, [](ExprId) { return true; }))
        if (kernel_.expr(id).kind == Expr::Kind::reduce) found.insert(id);
    };
    for (const KernelStore& store : kernel_.stores) {
      need(store.value);
      for (const ExprId id : loaded_exprs(store.index)) need(id);
    }
    return found;
  }
  /// False where it is no such sum, or does not fit those that are there.
  bool add_sum(ProductBlock& block, ExprId id) const {
    const Expr& sum = kernel_.expr(id);
    const Expr& body = kernel_.expr(sum.args[0]);
    if (!is_float_sum(sum) || sum.dtype != f32 || sum.variables.size() != 1) return false;
    if (body.kind != Expr::Kind::scalar || body.op != ScalarOp::mul) return false;
    std::array<ExprId, 2> factors{load_of(body.args[0]), load_of(body.args[1])};
    if (!is_plain_load(factors[0]) || !is_plain_load(factors[1])) return false;
    if (needs(factors[0], block.column)) std::swap(factors[0], factors[1]);
    if (needs(factors[0], block.column) || !needs(factors[1], block.column)) return false;
    int row = -1;
    for (const int loop : kernel_.loops)
      if (needs(factors[0], loop) && !needs(factors[1], loop)) row = loop;
    if (!block.sums.empty() && (row != block.row || sum.variables[0] != block.terms)) return false;
    block.row = row;
    block.terms = sum.variables[0];
    block.sums.push_back({id, factors});
    return true;
  }
  /// What a factor widens, if it does.
  ExprId load_of(ExprId factor) const {
    const Expr& e = kernel_.expr(factor);
    return e.kind == Expr::Kind::scalar && e.op == ScalarOp::cast && e.dtype == f32 ? e.args[0] : factor;
  }
  bool is_plain_load(ExprId id) const {
    const Expr& e = kernel_.expr(id);
    return e.kind == Expr::Kind::load && register_type(e.dtype) == f32 && loaded_exprs(e.index).empty();
  }
  bool needs(ExprId id, int variable) const { return free_[static_cast<std::size_t>(id)].count(variable) > 0; }
  std::int64_t most(int variable) const { return kernel_.extent(variable).upper(); }

  bool choose_sizes(ProductBlock& block) const {
    const auto along = [&](std::size_t factor, int variable) {
      return std::ranges::all_of(
          block.sums, [&](const ProductBlock::Sum& sum) { return steps_by_one(kernel_.expr(sum.factors[factor]).index, variable); });
    };
    const auto sums = static_cast<int>(block.sums.size());
    const auto rows_up_to = [&](int most_rows) {
      return block.row < 0 ? 1 : static_cast<int>(std::min<std::int64_t>(most_rows, std::max<std::int64_t>(1, most(block.row))));
    };
    block.along_terms = width_ == 1 || (along(0, block.terms) && along(1, block.terms) && most(block.terms) >= width_);
    if (block.along_terms) {
      block.rows = rows_up_to(std::max(1, 4 / sums));
      block.columns = block.row < 0 ? std::max(1, 8 / sums) : 4;
      return sums <= 4 && most(block.column) >= block.columns;
    }
    block.rows = rows_up_to(std::max(1, 8 / sums));
    block.columns = width_;
    const Dim& columns = kernel_.extent(block.column);
    return sums <= 8 && along(1, block.column) && columns.is_static() && columns.value() >= width_;
  }

  const Kernel& kernel_;
  const std::vector<std::set<int>>& free_;
  const int width_;
};

}  // namespace

std::optional<ProductBlock> product_block(const Kernel& kernel, const std::vector<std::set<int>>& free, int width) {
  return Finder(kernel, free, width).find();
}

namespace {

/// The largest value of an integer that is never negative; nothing where that is not known, or the bytes that it is made of lie otherwise.
class DotCode {
 public:
  DotCode(const Kernel& kernel, const std::vector<std::set<int>>& free, const DotLanes& lanes)
      : kernel_(kernel), free_(free), lanes_(lanes) {}

  std::optional<std::int64_t> most(ExprId id) const {
    const Expr& e = kernel_.expr(id);
    if (e.kind == Expr::Kind::constant) return e.integer >= 0 ? std::optional(e.integer) : std::nullopt;
    if (e.kind == Expr::Kind::load) return e.dtype == u8 && lies_by_lanes(e.index) ? std::optional<std::int64_t>(255) : std::nullopt;
    if (e.kind != Expr::Kind::scalar) return std::nullopt;
    const auto a = most(e.args[0]);
    if (!a || e.args.size() == 1) return e.op == ScalarOp::cast ? a : std::nullopt;
    if (e.op == ScalarOp::shr && is_shared(e.args[1])) return a;
    const auto b = most(e.args[1]);
    if (!b) return std::nullopt;
    switch (e.op) {
      case ScalarOp::logical_and: return std::min(*a, *b);
      case ScalarOp::logical_or: return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(*a, *b)) + 1)) - 1;
      case ScalarOp::add: return *a + *b;
      case ScalarOp::shl: return *b < 8 ? std::optional(*a << *b) : std::nullopt;
      default: return std::nullopt;
    }
  }

 private:
  /// Bytes of vectors that lie one behind the other.
  bool lies_by_lanes(const Index& index) const {
    const Index steps = Index::variable(lanes_.lane, kernel_.extent(lanes_.lane)) +
                        Index::variable(lanes_.terms, kernel_.extent(lanes_.terms)) * Dim(lanes_.width);
    return steps_by_one(index, lanes_.lane) && !needs_either(index - steps);
  }
  bool needs_either(const Index& index) const {
    std::set<int> needed;
    add_index_variables(index, free_, needed);
    return needed.count(lanes_.lane) > 0 || needed.count(lanes_.terms) > 0;
  }
  bool is_shared(ExprId id) const {
    const std::set<int>& needed = free_[static_cast<std::size_t>(id)];
    return !needed.count(lanes_.lane) && !needed.count(lanes_.terms);
  }

  const Kernel& kernel_;
  const std::vector<std::set<int>>& free_;
  const DotLanes& lanes_;
};

}  // namespace

namespace {

/// A code, and what is taken from it.
std::pair<ExprId, std::int64_t> parts_of_code(const Kernel& kernel, ExprId code) {
  const Expr& e = kernel.expr(code);
  if (e.kind != Expr::Kind::scalar || e.op != ScalarOp::sub || kernel.expr(e.args[1]).kind != Expr::Kind::constant) return {code, 0};
  return {e.args[0], kernel.expr(e.args[1]).integer};
}

}  // namespace

bool is_dot_code(const Kernel& kernel, const std::vector<std::set<int>>& free, ExprId code, const DotLanes& lanes) {
  constexpr std::int64_t bound = 128;
  const auto [stored, less] = parts_of_code(kernel, code);
  const auto most = DotCode(kernel, free, lanes).most(stored);
  return most && less >= 0 && *most + less < bound && free[static_cast<std::size_t>(code)].count(lanes.lane) > 0;
}

std::optional<DotSum> dot_sum(const Kernel& kernel, const std::vector<std::set<int>>& free, ExprId sum, const DotLanes& lanes) {
  const Expr& e = kernel.expr(sum);
  if (e.kind != Expr::Kind::reduce || e.reduce != ReduceKind::sum || e.dtype != i32) return std::nullopt;
  const Expr& body = kernel.expr(e.args[0]);
  if (body.kind != Expr::Kind::scalar || body.op != ScalarOp::mul) return std::nullopt;
  for (const std::size_t side : {0, 1}) {
    const Expr& x = kernel.expr(body.args[side]);
    const ExprId code = body.args[1 - side];
    if (x.kind != Expr::Kind::scalar || x.op != ScalarOp::cast || !is_dot_code(kernel, free, code, lanes)) continue;
    const Expr& load = kernel.expr(x.args[0]);
    const bool is_shared = !free[static_cast<std::size_t>(x.args[0])].count(lanes.lane);
    if (load.kind == Expr::Kind::load && load.dtype == i8 && is_shared && steps_by_one(load.index, lanes.terms)) {
      const auto [stored, less] = parts_of_code(kernel, code);
      return DotSum{stored, x.args[0], less};
    }
  }
  return std::nullopt;
}

}  // namespace rlx
