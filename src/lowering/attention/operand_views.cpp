#include "lowering/attention/operand_views.h"

#include <bit>
#include <utility>

#include "ir/sources.h"
#include "lowering/products/strided_view.h"

namespace rlx {
namespace {

constexpr int whole_row_shift = 62;  // of scales: no feature has such a number

using At = std::vector<Index>;

std::vector<Dim> strides_of(const View& view, const At& at) {
  std::vector<Dim> strides;
  for (const Index& i : at) strides.push_back(i.terms().empty() ? Dim(0) : view.stride(i.terms()[0].atom->id));
  return strides;
}

/// A constant of one element, which kernels write as a number.
std::optional<StridedOperand> constant_element(const Graph& graph, ValueId value) {
  const Array* const constant = constant_value(graph.node(value.node));
  if (!constant || constant->size() != 1) return std::nullopt;
  return StridedOperand{value, 0, std::vector<Dim>(graph.type(value).shape.size(), Dim(0))};
}

/// The load that an index was read by; what clamps the integer is passed over, as the extent of the atom says the same.
const Expr* load_behind(const Kernel& kernel, ExprId id) {
  const Expr* e = &kernel.expr(id);
  while (e->kind == Expr::Kind::scalar && (e->op == ScalarOp::max || e->op == ScalarOp::min || e->op == ScalarOp::cast))
    e = &kernel.expr(e->args[0]);
  return e->kind == Expr::Kind::load ? e : nullptr;
}

bool is_of(const Index::Term& term, Atom::Kind kind, const Index& numerator) {
  return term.atom->kind == kind && *term.atom->numerator == numerator;
}

/// Adds the term of a variable to the strides of `at`.
bool add_stride(const Index::Term& term, const At& at, std::vector<Dim>& strides) {
  for (std::size_t axis = 0; axis < at.size(); ++axis)
    if (!at[axis].is_constant() && same_atom(term.atom, at[axis].terms()[0].atom)) return strides[axis] = term.coefficient, true;
  return false;
}

/// What the table is read at: strides of the batch, and of the quotient of the row and the rows of a page.
std::optional<PageTable> page_table(const Kernel& kernel, const Index::Term& term, const At& at, std::int64_t rows) {
  const Expr* const load = load_behind(kernel, term.atom->id);
  if (!load || load->dtype != i32) return std::nullopt;
  const At batch(at.begin(), at.end() - 3);
  PageTable table{
      kernel.buffers[static_cast<std::size_t>(load->buffer)].value, load->index.constant(), {}, term.atom->extent, rows, term.coefficient};
  table.strides.assign(batch.size() + 1, Dim(0));
  for (const Index::Term& part : load->index.terms()) {
    if (is_of(part, Atom::Kind::quotient, at[at.size() - 2]) && part.atom->denominator == Dim(rows))
      table.strides.back() = part.coefficient;
    else if (!add_stride(part, batch, table.strides)) return std::nullopt;
  }
  return table;
}

/// A stored value read at (batch..., head, row, feature), perhaps in pages that a table names; runs of `block` features, a power of two,
/// may share an element.
struct RowsView {
  StridedOperand operand;
  std::int64_t block = 1;
};

std::optional<RowsView> rows_view(const Kernel& kernel, const Expr& load, const At& at, std::int64_t most_rows) {
  RowsView view{{kernel.buffers[static_cast<std::size_t>(load.buffer)].value, load.index.constant(), std::vector<Dim>(at.size(), Dim(0))}};
  StridedOperand& operand = view.operand;
  const std::size_t row = at.size() - 2;
  std::int64_t rows = most_rows;  // one page, unless the index says otherwise
  const Index::Term* page = nullptr;
  for (const Index::Term& term : load.index.terms()) {
    const bool is_fixed = term.atom->denominator.is_static();
    if (term.atom->kind == Atom::Kind::loaded && !page) page = &term;
    else if (is_of(term, Atom::Kind::remainder, at[row]) && is_fixed)
      operand.strides[row] = term.coefficient, rows = term.atom->denominator.value();
    else if (is_of(term, Atom::Kind::quotient, at.back()) && is_fixed)
      operand.strides.back() = term.coefficient, view.block = term.atom->denominator.value();
    else if (!add_stride(term, at, operand.strides)) return std::nullopt;
  }
  if (page) operand.pages = page_table(kernel, *page, at, rows);
  const bool fits = page ? operand.pages && (rows == most_rows || rows % rows_of_pages == 0) : rows == most_rows;
  return fits && std::has_single_bit(static_cast<std::uint64_t>(view.block)) ? std::optional(view) : std::nullopt;
}

bool features_adjacent(const StridedOperand& operand, const Dim& features) {
  return operand.strides.back() == Dim(1) || features == Dim(1);
}

/// The load of an element that is at most widened.
const Expr* widened_load(const Kernel& kernel, ExprId id) {
  const Expr* e = &kernel.expr(id);
  if (e->kind == Expr::Kind::scalar && e->op == ScalarOp::cast) e = &kernel.expr(e->args[0]);
  return e->kind == Expr::Kind::load ? e : nullptr;
}

/// What a product of int8 elements and their scales is made of: the loads of both; else null.
std::pair<const Expr*, const Expr*> scaled_load(const Kernel& kernel, const Expr& product) {
  if (product.kind != Expr::Kind::scalar || product.op != ScalarOp::mul) return {};
  for (const std::size_t codes : {0U, 1U}) {
    const Expr *const elements = widened_load(kernel, product.args[codes]), *const scale = &kernel.expr(product.args[1 - codes]);
    if (elements && elements->dtype == i8 && scale->kind == Expr::Kind::load && scale->dtype == f32) return {elements, scale};
  }
  return {};
}

bool same_pages(const std::optional<PageTable>& a, const std::optional<PageTable>& b) {
  if (!a || !b) return !a && !b;
  return a->value == b->value && a->offset == b->offset && a->strides == b->strides && a->rows == b->rows;
}

/// The scales of rows at `elements`, side by side, or one for a row.
std::optional<RowScales> row_scales(const Kernel& kernel, const Expr& load, const At& at, const RowsView& elements,
                                    std::int64_t most_rows) {
  const auto view = rows_view(kernel, load, at, most_rows);
  if (!view || !same_pages(view->operand.pages, elements.operand.pages)) return std::nullopt;
  const Dim& stride = view->operand.strides.back();
  if (stride == Dim(0)) return RowScales{view->operand, whole_row_shift};
  if (!(stride == Dim(1))) return std::nullopt;
  return RowScales{view->operand, std::countr_zero(static_cast<std::uint64_t>(view->block))};
}

bool takes_elements(DType stored, DType used) { return stored == used || (used == f32 && (stored == f16 || stored == bf16)); }

}  // namespace

std::optional<StridedOperand> strided(const Graph& graph, ValueId value, const Puller::IsStored& is_stored) {
  if (auto constant = constant_element(graph, value)) return constant;
  Kernel kernel;
  const At at = element_variables(kernel, graph.type(value).shape);
  const auto view = as_view(kernel, Puller(graph, kernel, is_stored).pull(value, at));
  if (!view || graph.type(view->value).dtype != graph.type(value).dtype) return std::nullopt;
  return StridedOperand{view->value, view->offset, strides_of(*view, at)};
}

std::optional<StoredRows> stored_rows(const Graph& graph, ValueId value, const Puller::IsStored& is_stored) {
  const Type& type = graph.type(value);
  if (const auto constant = constant_element(graph, value); constant && features_adjacent(*constant, type.shape.back()))
    return StoredRows{*constant, std::nullopt};
  Kernel kernel;
  const At at = element_variables(kernel, type.shape);
  const ExprId id = Puller(graph, kernel, is_stored).pull(value, at);
  auto [elements, scale] = scaled_load(kernel, kernel.expr(id));
  if (!elements) elements = widened_load(kernel, id);
  if (!elements || (!scale && !takes_elements(elements->dtype, type.dtype))) return std::nullopt;
  const std::int64_t most_rows = type.shape[type.shape.size() - 2].upper();
  const auto view = rows_view(kernel, *elements, at, most_rows);
  if (!view || view->block != 1 || !features_adjacent(view->operand, type.shape.back())) return std::nullopt;
  if (!scale) return StoredRows{view->operand, std::nullopt};
  auto scales = row_scales(kernel, *scale, at, *view, most_rows);
  return scales ? std::optional(StoredRows{view->operand, std::move(scales)}) : std::nullopt;
}

std::optional<StridedOperand> destination(const Graph& graph, const std::vector<ValueId>& region) {
  Kernel kernel;
  const At at = element_variables(kernel, graph.type(region[0]).shape);
  At place = at;
  for (std::size_t i = 1; i < region.size(); ++i) {
    const auto next = follow(graph, graph.node(region[i].node), place);
    if (!next) return std::nullopt;
    place = *next;
  }
  const Index flat = flatten(place, graph.type(region.back()).shape);
  View view{region.back(), graph.type(region.back()).dtype, flat.constant(), {}};
  for (const Index::Term& term : flat.terms()) {
    if (term.atom->kind != Atom::Kind::variable) return std::nullopt;
    view.strides[term.atom->id] = term.coefficient;
  }
  return StridedOperand{view.value, view.offset, strides_of(view, at)};
}

}  // namespace rlx
