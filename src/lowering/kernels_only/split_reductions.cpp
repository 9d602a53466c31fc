// Reductions of very many terms are computed in parts first, and then what these are together. A device with many lanes has parts also of
// fewer terms to few results, and of products with one row.
#include <algorithm>
#include <limits>
#include <optional>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "lowering/kernels_only/kernel_claims.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using AxisNumbers = std::vector<std::int64_t>;
const AxisNumbers& axes_of(const Node& reduction) { return std::get<AxisNumbers>(reduction.attrs[1]); }

bool is_reduction(const Node& node) { return node.op->name == "reduce"; }

/// Into how many parts of equal length the axis is cut; 1: it is not.
std::int64_t parts_of(std::int64_t length, std::int64_t most) {
  std::int64_t best = 1;
  for (std::int64_t parts = 2; parts <= std::min(most, length); ++parts)
    if (length % parts == 0) best = parts;
  return best;
}

struct Split {
  std::int64_t axis = -1, parts = 1;
  std::int64_t length = 0;  // to which the axis is filled up with what changes no result; 0: it is as long as it is
};

/// Of threads: as many whatever else is reduced beside, so that a line has the same bits in any batch.
constexpr std::int64_t thread_parts = 64, least_thread_terms = 1 << 18;

/// Sums take more than one round a term.
std::int64_t least_terms_of_parts(const Caps& caps) { return caps.most_rounds > 0 ? caps.most_rounds / 2 : least_thread_terms; }

/// Into how many parts `terms` are to be cut at most. Terms that are neighbours are those of a group of lanes; others of one lane, beside
/// whose terms are those of the next.
std::int64_t most_parts(std::int64_t terms, std::int64_t results, bool neighbours, const Caps& caps) {
  if (caps.schedule.group == 0) return terms < least_terms_of_parts(caps) ? 1 : thread_parts;
  const std::int64_t workers = neighbours ? 1024 : 1 << 18, least_terms = neighbours ? 1 << 14 : 1 << 5;
  return std::min(workers / std::max<std::int64_t>(1, results), terms / least_terms);
}

/// What changes no result beside any terms, where a fill can be that.
std::optional<double> neutral_fill(const Node& reduction, DType dtype) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::string& kind = std::get<std::string>(reduction.attrs[0]);
  if (kind == "sum") return 0;
  if (kind == "prod") return 1;
  if (!is_float(dtype)) return std::nullopt;
  return kind == "max" ? -infinity : infinity;
}

/// Where the device would end loops before all terms: at the bounds of symbols, and whatever divides the length.
Split split_of_rounds(const Type& x, const Node& reduction, const Caps& caps) {
  if (caps.most_rounds == 0 || caps.schedule.group > 0 || !neutral_fill(reduction, x.dtype)) return {};
  const auto upper = [&](std::int64_t axis) { return x.shape[static_cast<std::size_t>(axis)].upper(); };
  double terms = 1;
  for (const std::int64_t axis : axes_of(reduction)) terms *= static_cast<double>(upper(axis));
  const double least = static_cast<double>(least_terms_of_parts(caps)), most = least * thread_parts;  // parts beyond have the same fault
  if (terms < least || terms > most) return {};
  const std::int64_t longest = *std::ranges::max_element(axes_of(reduction), {}, upper);
  return {longest, thread_parts, (upper(longest) + thread_parts - 1) / thread_parts * thread_parts};
}

/// By sizes alone.
Split split_of(const Graph& graph, const Node& reduction, const Caps& caps) {
  const Type& x = graph.type(reduction.operands[0]);
  const AxisNumbers& axes = axes_of(reduction);
  if (is_complex(x.dtype) || axes.empty()) return {};
  if (!x.is_static()) return split_of_rounds(x, reduction, caps);
  const auto extent = [&](std::int64_t axis) { return x.shape[static_cast<std::size_t>(axis)].value(); };
  std::int64_t terms = 1;
  for (const std::int64_t axis : axes) terms *= extent(axis);
  if (terms == 0) return {};
  const bool neighbours = std::ranges::find(axes, x.rank() - 1) != axes.end();
  const std::int64_t longest = *std::ranges::max_element(axes, {}, extent);
  const std::int64_t most = most_parts(terms, x.size().value() / terms, neighbours, caps);
  if (most < 4) return {};
  const std::int64_t parts = parts_of(extent(longest), most);
  return parts < 4 && caps.most_rounds > 0 ? split_of_rounds(x, reduction, caps) : Split{longest, parts};
}

Value reduced(GraphData& data, const Node& reduction, const Value& x, const AxisNumbers& axes) {
  return emit(data, *reduction.op, {reduction.attrs[0], axes}, std::vector{x})[0];
}

/// Threads' parts are few, so that they are added in f64: f32 would round their sum up to 64 times.
bool joins_in_f64(const Node& reduction, DType type, const Caps& caps) {
  const bool has_f64 = std::ranges::find(caps.lacks, f64) == caps.lacks.end();
  return has_f64 && caps.schedule.group == 0 && type == f32 && std::get<std::string>(reduction.attrs[0]) == "sum";
}

Value filled(const Value& x, const Split& split, double fill) {
  Dims none(static_cast<std::size_t>(x.rank()), Dim(0)), behind = none;
  behind[static_cast<std::size_t>(split.axis)] = Dim(split.length) - x.dim(split.axis);
  return pad(x, none, behind, {}, fill);
}

Value in_two_steps(GraphData& data, const Node& reduction, Value x, const Split& split, const Caps& caps) {
  const DType type = x.dtype();
  if (type == f16 || type == bf16) x = cast(x, f32);
  if (split.length > 0) x = filled(x, split, *neutral_fill(reduction, x.dtype()));
  Dims shape(x.shape().begin(), x.shape().end());
  shape[static_cast<std::size_t>(split.axis)] = x.dim(split.axis).value() / split.parts;
  shape.insert(shape.begin() + split.axis, Dim(split.parts));
  AxisNumbers inner;
  std::int64_t outer = split.axis;  // among the axes that stay
  for (const std::int64_t axis : axes_of(reduction)) {
    inner.push_back(axis < split.axis ? axis : axis + 1);
    outer -= axis < split.axis;
  }
  Value parts = reduced(data, reduction, reshape(x, shape), inner);
  if (joins_in_f64(reduction, x.dtype(), caps)) parts = cast(parts, f64);
  return cast(reduced(data, reduction, parts, {outer}), type);
}

/// Into how many sums a product of one row with columns is cut, whose neighbours in memory are those of other columns; 1: it is none, or
/// has enough columns.
std::int64_t parts_of_product(const Graph& graph, const Node& node, const Caps& caps) {
  if (node.op->name != "dot" || caps.schedule.group == 0) return 1;
  const Type &x = graph.type(node.operands[0]), &w = graph.type(node.operands[1]);
  const AxisNumbers &of_x = std::get<AxisNumbers>(node.attrs[0]), &of_w = std::get<AxisNumbers>(node.attrs[1]);
  const bool has_batch = !std::get<AxisNumbers>(node.attrs[2]).empty();
  if (!x.is_static() || !w.is_static() || is_complex(x.dtype) || has_batch || w.rank() != 2 || of_w != AxisNumbers{0}) return 1;
  const std::int64_t depth = w.shape[0].value(), columns = w.shape[1].value();
  if (x.size().value() != depth || of_x.size() != 1 || columns < 32) return 1;
  constexpr std::int64_t lanes = 1 << 18, least_terms = 1 << 5;
  const std::int64_t most = std::min(lanes / columns, depth / least_terms);
  return most < 4 ? 1 : parts_of(depth, most);
}

Value product_in_two_steps(GraphData& data, const Node& node, Value x, Value w, const Type& type, std::int64_t parts) {
  if (type.dtype == f16 || type.dtype == bf16) x = cast(x, f32), w = cast(w, f32);
  const Dim depth = w.dim(0).value() / parts;
  const Values cut{reshape(x, {parts, depth}), reshape(w, {parts, depth, w.dim(1)})};
  const Value products = emit(data, *node.op, {AxisNumbers{1}, AxisNumbers{1}, AxisNumbers{0}, AxisNumbers{0}}, cut)[0];
  return reshape(cast(sum(products, {0}), type.dtype), type.shape);
}

/// What the second of two steps reduces, behind the cast to what it computes in.
ValueId joined_by(const Graph& graph, const Node& reduction) {
  const ValueId x = reduction.operands[0];
  return graph.node(x.node).op->name == "cast" ? graph.node(x.node).operands[0] : x;
}

/// Whether a reduction is the second of two steps.
bool are_parts(const Graph& graph, const Node& reduction, const Caps& caps) {
  const Node& parts = graph.node(joined_by(graph, reduction).node);
  const bool by_lanes = caps.schedule.group > 0;
  if (!is_reduction(parts)) return by_lanes && parts.op->name == "dot";
  const Type& x = graph.type(parts.operands[0]);
  if (parts.attrs[0] != reduction.attrs[0]) return false;
  return by_lanes || ((x.is_static() || caps.most_rounds > 0) && x.size().upper() >= least_terms_of_parts(caps));
}

/// Parts are computed by kernels of their own.
struct Parts final : GraphClaim {
  std::optional<Launch> launch(ValueId /*value*/) override { return std::nullopt; }
};

struct SplitClaim final : Claim {
  Graph prepare(const Graph& graph, const Caps& caps) const override {
    Rebuilder out(graph);
    for (const std::int32_t id : out.needed()) {
      const Node& node = graph.node(id);
      const Split split = is_reduction(node) ? split_of(graph, node, caps) : Split{};
      const Values operands = out.operands(id);
      if (split.parts > 1) out.replace(id, {in_two_steps(out.data(), node, operands[0], split, caps)});
      else if (const std::int64_t parts = parts_of_product(graph, node, caps); parts > 1)
        out.replace(id, {product_in_two_steps(out.data(), node, operands[0], operands[1], graph.type({id, 0}), parts)});
      else out.copy(id);
    }
    return out.finish();
  }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override {
    const Graph& graph = draft.graph;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
      if (!draft.cut.live(id) || draft.cut.on_host(id) || !is_reduction(graph.node(id))) continue;
      if (!are_parts(graph, graph.node(id), draft.target.caps)) continue;
      draft.cut.store(joined_by(graph, graph.node(id)));
      if (draft.target.caps.most_rounds > 0) draft.cut.store({id, 0});  // what reads it would add the parts for each of its own terms
    }
    return std::make_unique<Parts>();
  }
};

}  // namespace

const Claim& split_claim() {
  static const SplitClaim claim;
  return claim;
}

}  // namespace rlx
