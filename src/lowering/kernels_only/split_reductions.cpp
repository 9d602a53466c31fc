// Reductions of many terms to few results, of which a device with many lanes computes parts first, and then what they are together.
#include <algorithm>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "lowering/kernels_only/claims.h"
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
};

/// By sizes alone. Terms that are neighbours are those of a group of lanes; others of one lane, beside whose terms are those of the next.
Split split_of(const Graph& graph, const Node& reduction) {
  const Type& x = graph.type(reduction.operands[0]);
  const AxisNumbers& axes = axes_of(reduction);
  if (!x.is_static() || is_complex(x.dtype) || axes.empty()) return {};
  const auto extent = [&](std::int64_t axis) { return x.shape[static_cast<std::size_t>(axis)].value(); };
  std::int64_t terms = 1;
  for (const std::int64_t axis : axes) terms *= extent(axis);
  if (terms == 0) return {};
  const std::int64_t results = x.size().value() / terms;
  const bool by_groups = std::ranges::find(axes, x.rank() - 1) != axes.end();
  const std::int64_t workers = by_groups ? 1024 : 1 << 18, least_terms = by_groups ? 1 << 14 : 1 << 5;
  const Split split{*std::ranges::max_element(axes, {}, extent), 1};
  const std::int64_t most = std::min(workers / std::max<std::int64_t>(1, results), terms / least_terms);
  return most < 4 ? Split{} : Split{split.axis, parts_of(extent(split.axis), most)};
}

Value reduced(GraphData& data, const Node& reduction, const Value& x, const AxisNumbers& axes) {
  return emit(data, *reduction.op, {reduction.attrs[0], axes}, std::vector{x})[0];
}

Value in_two_steps(GraphData& data, const Node& reduction, Value x, const Split& split) {
  const DType type = x.dtype();
  if (type == f16 || type == bf16) x = cast(x, f32);
  Dims shape(x.shape().begin(), x.shape().end());
  shape[static_cast<std::size_t>(split.axis)] = x.dim(split.axis).value() / split.parts;
  shape.insert(shape.begin() + split.axis, Dim(split.parts));
  AxisNumbers inner;
  std::int64_t outer = split.axis;  // among the axes that stay
  for (const std::int64_t axis : axes_of(reduction)) {
    inner.push_back(axis < split.axis ? axis : axis + 1);
    outer -= axis < split.axis;
  }
  const Value parts = reduced(data, reduction, reshape(x, shape), inner);
  return cast(reduced(data, reduction, parts, {outer}), type);
}

/// Parts are computed by kernels of their own.
struct Parts final : GraphClaim {
  std::optional<Launch> launch(ValueId /*value*/) override { return std::nullopt; }
};

struct SplitClaim final : Claim {
  Graph prepare(const Graph& graph, const Caps& caps) const override {
    if (caps.schedule.group == 0) return graph;
    Rebuilder out(graph);
    for (const std::int32_t id : out.needed()) {
      const Node& node = graph.node(id);
      const Split split = is_reduction(node) ? split_of(graph, node) : Split{};
      if (split.parts == 1) out.copy(id);
      else out.replace(id, {in_two_steps(out.data(), node, out.operands(id)[0], split)});
    }
    return out.finish();
  }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override {
    const Graph& graph = draft.graph;
    for (std::int32_t id = 0; draft.target.caps.schedule.group > 0 && id < static_cast<std::int32_t>(graph.size()); ++id) {
      if (!draft.cut.live(id) || draft.cut.on_host(id) || !is_reduction(graph.node(id))) continue;
      const ValueId parts = graph.node(id).operands[0];
      if (is_reduction(graph.node(parts.node)) && graph.node(parts.node).attrs[0] == graph.node(id).attrs[0]) draft.cut.store(parts);
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
