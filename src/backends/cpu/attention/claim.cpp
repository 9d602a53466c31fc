#include "backends/cpu/attention/claim.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attributes.h"
#include "backends/cpu/strided_view.h"
#include "ir/sources.h"

namespace rlx::cpu {
namespace {

constexpr int whole_row_shift = 62;           // of scales: no feature has such a number
constexpr std::int64_t most_features = 1024;  // the queries and sums of a block stay in a second-level cache

using At = std::vector<Index>;

/// The operands by what they are; those that are optional may be missing.
struct Operands {
  explicit Operands(const Node& node) : q(node.operands[0]), k(node.operands[1]), v(node.operands[2]) {
    std::size_t next = 3;
    if (attribute<bool>(node, "has_mask")) mask = node.operands[next++];
    if (attribute<bool>(node, "has_bias")) bias = node.operands[next++];
    if (attribute<bool>(node, "has_positions")) positions = node.operands[next++];
  }
  ValueId q, k, v;
  std::optional<ValueId> mask, bias, positions;
};

/// Fresh variables for the axes of a shape.
At fresh_place(Kernel& kernel, const Dims& shape) {
  At at;
  for (const Dim& extent : shape) at.push_back(Index::variable(kernel.add_variable(extent), extent));
  return at;
}

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

/// The value as a view of a stored one of the same type of elements.
std::optional<StridedOperand> strided(const Graph& graph, ValueId value, const Puller::IsStored& is_stored) {
  if (auto constant = constant_element(graph, value)) return constant;
  Kernel kernel;
  const At at = fresh_place(kernel, graph.type(value).shape);
  const auto view = as_view(kernel, Puller(graph, kernel, is_stored).pull(value, at));
  if (!view || graph.type(view->value).dtype != graph.type(value).dtype) return std::nullopt;
  return StridedOperand{view->value, view->offset, strides_of(*view, at)};
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
  const bool fits = page ? operand.pages && (rows == most_rows || rows % attention_key_block == 0) : rows == most_rows;
  return fits && std::has_single_bit(static_cast<std::uint64_t>(view.block)) ? std::optional(view) : std::nullopt;
}

bool features_adjacent(const StridedOperand& operand, const Dim& features) {
  return operand.strides.back() == Dim(1) || features == Dim(1);
}

/// Keys or values with their scales, where they have some.
struct StoredRows {
  StridedOperand elements;
  std::optional<RowScales> scales;
};

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

/// Keys or values (batch..., head, row, feature), features side by side: views of stored values, whose elements the kernel widens.
std::optional<StoredRows> stored_rows(const Graph& graph, ValueId value, const Puller::IsStored& is_stored) {
  const Type& type = graph.type(value);
  if (const auto constant = constant_element(graph, value); constant && features_adjacent(*constant, type.shape.back()))
    return StoredRows{*constant, std::nullopt};
  Kernel kernel;
  const At at = fresh_place(kernel, type.shape);
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

/// An operand that is broadcast to more axes: strides of 0 in front.
StridedOperand with_axes(StridedOperand operand, std::size_t axes) {
  operand.strides.insert(operand.strides.begin(), axes - operand.strides.size(), Dim(0));
  return operand;
}

/// Where each element of the op's result lies in the last value of the region; nothing when that is not linear.
std::optional<StridedOperand> destination(const Graph& graph, const std::vector<ValueId>& region) {
  Kernel kernel;
  const At at = fresh_place(kernel, graph.type(region[0]).shape);
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

}  // namespace

bool takes_attention(const Graph& graph, const Node& node) {
  const Operands operands(node);
  const DType dtype = graph.type(operands.q).dtype;
  if ((dtype != f32 && dtype != bf16) || graph.type(operands.k).dtype != dtype || graph.type(operands.v).dtype != dtype) return false;
  const auto is_position = [&](ValueId v) { return graph.type(v).dtype == i32 || graph.type(v).dtype == i64; };
  return (!operands.bias || graph.type(*operands.bias).dtype == f32) && (!operands.positions || is_position(*operands.positions)) &&
         graph.type(operands.q).shape.back().upper() <= most_features && graph.type(operands.v).shape.back().upper() <= most_features;
}

std::vector<ValueId> attention_region(const Graph& graph, ValueId op, const std::map<ValueId, std::vector<std::int32_t>>& users,
                                      const std::function<bool(ValueId)>& must_store) {
  std::vector<ValueId> region{op};
  while (!must_store(region.back())) {
    const auto readers = users.find(region.back());
    if (readers == users.end() || readers->second.size() != 1) break;
    region.push_back({readers->second[0], 0});
    if (graph.type(region.back()).dtype == graph.type(op).dtype && destination(graph, region)) continue;
    region.pop_back();
    break;
  }
  return region;
}

std::optional<Attention> as_attention(const Graph& graph, const std::vector<ValueId>& region, const Puller::IsStored& is_stored,
                                      ValueId& blocker) {
  const Node& node = graph.node(region[0].node);
  const Operands operands(node);
  const Dims &q = graph.type(operands.q).shape, &k = graph.type(operands.k).shape;
  const std::size_t batch = q.size() - 3;
  Attention a;
  a.node = region[0];
  a.result = region.back();
  a.batch.assign(q.begin(), q.end() - 3);
  a.heads = q[batch], a.kv_heads = k[batch], a.queries = q[batch + 1], a.keys = k[batch + 1], a.head_size = q.back();
  a.value_size = graph.type(operands.v).shape.back();
  const auto read = [&](ValueId value, StridedOperand& into) {
    auto view = strided(graph, value, is_stored);
    if (!view) return blocker = value, false;
    into = std::move(*view);
    return true;
  };
  const auto read_rows = [&](ValueId value, StridedOperand& into, std::optional<RowScales>& scales) {
    auto rows = stored_rows(graph, value, is_stored);
    if (!rows) return blocker = value, false;
    into = std::move(rows->elements), scales = std::move(rows->scales);
    return true;
  };
  if (!read(operands.q, a.q) || !read_rows(operands.k, a.k, a.k_scales) || !read_rows(operands.v, a.v, a.v_scales)) return std::nullopt;
  if (graph.type(a.k.value).dtype != graph.type(a.v.value).dtype)
    return blocker = is_stored(operands.k) ? operands.v : operands.k, std::nullopt;
  const auto read_more = [&](const std::optional<ValueId>& value, std::optional<StridedOperand>& into, std::size_t axes) {
    if (!value) return true;
    if (!read(*value, into.emplace())) return false;
    into = with_axes(*into, axes);
    return true;
  };
  if (!read_more(operands.mask, a.mask, batch + 3) || !read_more(operands.bias, a.bias, batch + 3) ||
      !read_more(operands.positions, a.positions, batch + 1))
    return std::nullopt;
  const auto out = destination(graph, region);
  if (!out) fail_internal("attention: the end of its region is no place of its result");
  a.out = *out;
  const auto scale = attribute<double>(node, "scale");
  a.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(a.head_size.value()));
  a.softcap = attribute<double>(node, "softcap");
  a.causal = attribute<bool>(node, "causal");
  a.window = attribute<std::int64_t>(node, "window");
  a.int16 = attribute<bool>(node, "int16");
  return a;
}

double visible_scores(const Attention& attention, const Bindings& bindings) {
  const std::int64_t queries = attention.queries.evaluate(bindings), keys = attention.keys.evaluate(bindings);
  const auto heads = static_cast<double>((product(attention.batch) * attention.heads).evaluate(bindings));
  if ((!attention.causal && attention.window == 0) || attention.positions)
    return heads * static_cast<double>(queries) * static_cast<double>(keys);
  double scores = 0;
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t end = std::max<std::int64_t>(keys - queries + query + 1, 0);
    scores += static_cast<double>(attention.window > 0 ? std::min(end, attention.window) : end);
  }
  return heads * scores;
}

}  // namespace rlx::cpu
