#include "kernel/product_block.h"

#include <algorithm>

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
    block.sum = only_reduction();
    if (block.sum < 0 || !is_product(block)) return std::nullopt;
    block.terms = kernel_.expr(block.sum).variables[0];
    block.column = kernel_.loops.back();
    if (needs(block.factors[0], block.column)) std::swap(block.factors[0], block.factors[1]);
    if (needs(block.factors[0], block.column) || !needs(block.factors[1], block.column)) return std::nullopt;
    for (const int loop : kernel_.loops)
      if (needs(block.factors[0], loop) && !needs(block.factors[1], loop)) block.row = loop;
    return choose_sizes(block) ? std::optional(block) : std::nullopt;
  }

 private:
  ExprId only_reduction() const {
    ExprId found = -1;
    for (std::size_t i = 0; i < kernel_.exprs.size(); ++i) {
      if (kernel_.exprs[i].kind != Expr::Kind::reduce) continue;
      if (found >= 0) return -1;
      found = static_cast<ExprId>(i);
    }
    return found;
  }
  bool is_product(ProductBlock& block) const {
    const Expr& sum = kernel_.expr(block.sum);
    const Expr& body = kernel_.expr(sum.args[0]);
    if (!is_float_sum(sum) || sum.dtype != f32 || sum.variables.size() != 1) return false;
    if (body.kind != Expr::Kind::scalar || body.op != ScalarOp::mul) return false;
    block.factors = {load_of(body.args[0]), load_of(body.args[1])};
    return std::ranges::all_of(block.factors, [&](ExprId id) { return is_plain_load(id); });
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
    const auto along = [&](std::size_t factor, int variable) { return steps_by_one(kernel_.expr(block.factors[factor]).index, variable); };
    const std::int64_t rows = block.row < 0 ? 1 : most(block.row);
    block.along_terms = width_ == 1 || (along(0, block.terms) && along(1, block.terms) && most(block.terms) >= width_);
    if (block.along_terms) {
      block.rows = static_cast<int>(std::min<std::int64_t>(4, rows));
      block.columns = block.rows == 1 ? 8 : 4;
      return most(block.column) >= block.columns;
    }
    block.rows = static_cast<int>(std::min<std::int64_t>(8, rows));
    block.columns = width_;
    const Dim& columns = kernel_.extent(block.column);
    return along(1, block.column) && columns.is_static() && columns.value() >= width_;
  }

  const Kernel& kernel_;
  const std::vector<std::set<int>>& free_;
  const int width_;
};

}  // namespace

std::optional<ProductBlock> product_block(const Kernel& kernel, const std::vector<std::set<int>>& free, int width) {
  return Finder(kernel, free, width).find();
}

}  // namespace rlx
