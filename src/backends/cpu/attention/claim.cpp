#include "backends/cpu/attention/claim.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attributes.h"
#include "backends/cpu/strided_view.h"
#include "ir/sources.h"

namespace rlx::cpu {
namespace {

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

/// The value as a view of a stored one of the same type of elements.
std::optional<StridedOperand> strided(const Graph& graph, ValueId value, const Puller::IsStored& is_stored) {
  // A kernel writes the element of such a constant as a number.
  if (const Array* constant = constant_value(graph.node(value.node)); constant && constant->size() == 1)
    return StridedOperand{value, 0, std::vector<Dim>(graph.type(value).shape.size(), Dim(0))};
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

/// Keys or values (batch..., head, row, feature) as pages of a stored value that a table names.
std::optional<StridedOperand> paged(const Graph& graph, ValueId value, const Puller::IsStored& is_stored) {
  const Dims& shape = graph.type(value).shape;
  Kernel kernel;
  const At at = fresh_place(kernel, shape);
  const Expr load = kernel.expr(Puller(graph, kernel, is_stored).pull(value, at));
  if (load.kind != Expr::Kind::load || load.dtype != graph.type(value).dtype) return std::nullopt;
  StridedOperand operand{kernel.buffers[static_cast<std::size_t>(load.buffer)].value, load.index.constant(),
                         std::vector<Dim>(at.size(), Dim(0))};
  const std::size_t row = at.size() - 2;
  std::int64_t rows = shape[row].upper();  // one page, unless the index says otherwise
  const Index::Term* page = nullptr;
  for (const Index::Term& term : load.index.terms()) {
    if (term.atom->kind == Atom::Kind::loaded && !page) page = &term;
    else if (is_of(term, Atom::Kind::remainder, at[row]) && term.atom->denominator.is_static())
      operand.strides[row] = term.coefficient, rows = term.atom->denominator.value();
    else if (!add_stride(term, at, operand.strides)) return std::nullopt;
  }
  if (page) operand.pages = page_table(kernel, *page, at, rows);
  const bool whole_blocks = rows == shape[row].upper() || rows % attention_key_block == 0;
  return operand.pages && whole_blocks ? std::optional(operand) : std::nullopt;
}

/// An operand that is broadcast to more axes: strides of 0 in front.
StridedOperand with_axes(StridedOperand operand, std::size_t axes) {
  operand.strides.insert(operand.strides.begin(), axes - operand.strides.size(), Dim(0));
  return operand;
}

bool features_adjacent(const StridedOperand& operand, const Dim& features) {
  return operand.strides.back() == Dim(1) || features == Dim(1);
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
  const auto read = [&](ValueId value, StridedOperand& into, bool adjacent) {
    auto view = strided(graph, value, is_stored);
    if (!view && adjacent) view = paged(graph, value, is_stored);
    if (!view || (adjacent && !features_adjacent(*view, graph.type(value).shape.back()))) return blocker = value, false;
    into = *view;
    return true;
  };
  if (!read(operands.q, a.q, false) || !read(operands.k, a.k, true) || !read(operands.v, a.v, true)) return std::nullopt;
  const auto read_more = [&](const std::optional<ValueId>& value, std::optional<StridedOperand>& into, std::size_t axes) {
    if (!value) return true;
    if (!read(*value, into.emplace(), false)) return false;
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
