#include "backends/cpu/product/product_kernels.h"

#include <algorithm>
#include <optional>

#include "kernel/cost.h"
#include "lowering/products/epilogue.h"
#include "ops/scalar/scalar.h"

namespace rlx::cpu {
namespace {

using At = std::vector<Index>;
Dim stride_along(const Index& index, int variable) {
  for (const Index::Term& term : index.terms())
    if (term.atom->kind == Atom::Kind::variable && term.atom->id == variable) return term.coefficient;
  return 0;
}

struct TileLoops {
  At batch;  // by axis of product.batch
  Index row, inner;
};

TileLoops tile_loops(Kernel& kernel, const Product& product, const Dim& inner, std::vector<std::string> symbols) {
  kernel.tile = true;
  std::string tile_stride = "tile_stride";
  while (std::find(symbols.begin(), symbols.end(), tile_stride) != symbols.end()) tile_stride += '_';
  symbols.push_back(std::move(tile_stride));
  kernel.symbols = std::move(symbols);
  Dims batch_shape;
  for (const ProductAxis& axis : product.batch) batch_shape.push_back(axis.extent);
  const auto loop = [&](const Dim& extent) {
    kernel.loops.push_back(kernel.add_variable(extent));
    return Index::variable(kernel.loops.back(), extent);
  };
  const Index batch = loop(rlx::product(batch_shape)), row = loop(product.rows.extent);
  return {unflatten(batch, batch_shape), row, loop(inner)};
}

bool arguments_fit(const Kernel& kernel) { return kernel.buffers.size() <= most_epilogue_arguments; }

/// The index times the distance of the rows of a tile, of its columns where it is transposed.
Index times_tile_stride(const Kernel& kernel, const Index& index) {
  return index * Dim::symbol(kernel.symbols.back(), std::int64_t{1} << 40);
}

}  // namespace

bool add_epilogue(const Graph& graph, Product& product, const std::vector<ValueId>& region, const std::vector<std::string>& symbols,
                  const Puller::IsStored& is_stored) {
  Kernel kernel;
  const TileLoops loops = tile_loops(kernel, product, product.columns.extent, symbols);
  const auto& [batch_at, row, column] = loops;
  Index flat = row * product.rows.c_stride + column * product.columns.c_stride;
  for (std::size_t i = 0; i < batch_at.size(); ++i) flat = flat + batch_at[i] * product.batch[i].c_stride;

  const Type& type = graph.type(product.dot);
  const auto at_of = places_of(graph, product.dot, unflatten(flat, type.shape), region);
  if (!at_of) return false;
  const ValueId last = region.back();
  const Index store = flatten(at_of->at(last), graph.type(last).shape);
  const bool by_columns = stride_along(store, kernel.loops[1]) == Dim(1);
  const Index tile_index = by_columns ? times_tile_stride(kernel, column) + row : times_tile_stride(kernel, row) + column;
  Puller puller(graph, kernel, [&](ValueId v) { return v == product.dot || is_stored(v); });
  const ExprId value = puller.pull(last, at_of->at(last), last != product.dot);
  if (!read_tile(kernel, product.dot, flatten(at_of->at(product.dot), type.shape), tile_index, product.sum())) return false;
  if (by_columns) std::swap(kernel.loops[1], kernel.loops[2]);
  for (const Index::Term& term : store.terms())
    if (term.atom->kind != Atom::Kind::variable && term.atom->kind != Atom::Kind::quotient && term.atom->kind != Atom::Kind::remainder)
      return false;
  kernel.stores.push_back({puller.buffer_of(last, true), store, value});
  if (!arguments_fit(kernel)) return false;
  if (type.dtype != product.sum()) round_sums(kernel, product.dot, type.dtype);
  product.epilogue = product.parts.size();
  product.parts.push_back(std::move(kernel));
  product.epilogue_by_columns = by_columns;
  product.result = last;
  return true;
}

namespace {

/// The loop along which the operands of most axes lie side by side in memory; -1 where there is none.
int innermost_loop(const Kernel& kernel) {
  std::map<int, int> reads;  // by variable
  std::size_t most_terms = 1;
  for (const Expr& e : kernel.exprs) {
    if (e.kind != Expr::Kind::load || e.index.terms().size() < most_terms) continue;
    if (e.index.terms().size() > most_terms) reads.clear();
    most_terms = e.index.terms().size();
    for (const Index::Term& term : e.index.terms())
      if (term.atom->kind == Atom::Kind::variable && term.coefficient == Dim(1)) ++reads[term.atom->id];
  }
  const auto most = std::ranges::max_element(reads, {}, [](const auto& entry) { return entry.second; });
  return most == reads.end() ? -1 : most->first;
}

bool reduces(const Kernel& kernel) {
  return std::ranges::any_of(kernel.exprs, [](const Expr& e) { return e.kind == Expr::Kind::reduce; });
}

Kernel kernel_of(const Graph& graph, ValueId value, const Puller::IsStored& is_stored) {
  Kernel kernel;
  Puller(graph, kernel, is_stored).pull(value, element_variables(kernel, graph.type(value).shape), true);
  return kernel;
}

}  // namespace

bool is_little_work(const Graph& graph, ValueId operand, const Puller::IsStored& is_stored) {
  constexpr int most_work = 8;
  const Kernel kernel = kernel_of(graph, operand, is_stored);
  if (reduces(kernel)) return false;
  const int inner = innermost_loop(kernel);
  const std::vector<std::set<int>> variables = free_variables(kernel);
  int total = 0;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i)
    if (const Expr& e = kernel.exprs[i]; e.kind == Expr::Kind::scalar && (inner < 0 || variables[i].count(inner) > 0)) total += work(e.op);
  return total <= most_work;
}

std::optional<std::set<ValueId>> statistics_below(const Graph& graph, ValueId operand, const Puller::IsStored& is_stored) {
  constexpr double least_elements = 8;  // for each of a statistic's
  std::set<ValueId> statistics;
  for (const Expr& e : kernel_of(graph, operand, is_stored).exprs) {
    if (e.kind != Expr::Kind::reduce) continue;
    const auto elements = [&](ValueId value) { return static_cast<double>(graph.type(value).size().upper()); };
    if (elements(e.origin) * least_elements > elements(operand)) return std::nullopt;
    statistics.insert(e.origin);
  }
  if (!is_little_work(graph, operand, [&](ValueId v) { return statistics.count(v) > 0 || is_stored(v); })) return std::nullopt;
  return statistics;
}

bool add_prologue(const Graph& graph, Product& product, const std::vector<std::string>& symbols, const Puller::IsStored& is_stored) {
  if (!product.depth_axes.empty()) return false;  // each index would be divided, which takes longer than to store the operand
  Kernel kernel;
  const TileLoops loops = tile_loops(kernel, product, product.depth.extent, symbols);
  Index flat = Index(product.a_offset) + loops.row * product.rows.a_stride + loops.inner * product.depth.a_stride;
  for (std::size_t i = 0; i < loops.batch.size(); ++i) flat = flat + loops.batch[i] * product.batch[i].a_stride;
  Puller puller(graph, kernel, [&](ValueId v) { return !(v == product.a) && is_stored(v); });
  const ExprId value = puller.pull(product.a, unflatten(flat, graph.type(product.a).shape), true);
  if (reduces(kernel)) return false;
  const bool by_columns = innermost_loop(kernel) == kernel.loops[1];
  const Index at = by_columns ? times_tile_stride(kernel, loops.inner) + loops.row : times_tile_stride(kernel, loops.row) + loops.inner;
  kernel.stores.push_back({puller.buffer_of(product.a, true), at, value});
  if (!arguments_fit(kernel)) return false;
  if (by_columns) std::swap(kernel.loops[1], kernel.loops[2]);
  product.prologue_by_columns = by_columns;
  product.prologue = product.parts.size();
  product.parts.push_back(std::move(kernel));
  return true;
}

}  // namespace rlx::cpu
