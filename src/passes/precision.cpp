#include "passes/precision.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "ops/scalar.h"
#include "ops/wide.h"
#include "passes/expand.h"
#include "passes/run_invariant.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

/// The attributes of a dot.
struct DotAxes {
  Ints lhs_contract, rhs_contract, lhs_batch, rhs_batch;

  explicit DotAxes(const Node& dot)
      : lhs_contract(std::get<Ints>(dot.attrs[0])),
        rhs_contract(std::get<Ints>(dot.attrs[1])),
        lhs_batch(std::get<Ints>(dot.attrs[2])),
        rhs_batch(std::get<Ints>(dot.attrs[3])) {}

  Value dot(Value x, Value z) const { return rlx::dot(x, z, lhs_contract, rhs_contract, lhs_batch, rhs_batch); }
};

/// What the structure ops before x move the elements of.
const Node& moved(const GraphData& graph, const Node& node) {
  const bool moves = node.op->sources && node.operands.size() == 1;
  return moves ? moved(graph, graph.node(node.operands[0].node)) : node;
}

/// x as bf16, rounded below the structure ops that move its elements: so what is stored is narrow, and lies as the wide value would. A
/// claim's result is moved as it stores it.
Value narrowed(Value x) {
  GraphData& graph = x.graph();
  const Node& node = graph.node(x.id().node);
  if (node.operands.size() == 1 && moved(graph, node).op->kind != OpKind::composite) {
    const Value operand(&graph, node.operands[0]);
    if (node.op->scalar == static_cast<int>(ScalarOp::cast) && operand.dtype() == bf16) return operand;
    if (node.op->sources) {
      const Value inner = narrowed(operand);
      return emit(graph, *node.op, node.attrs, {&inner, 1})[0];
    }
  }
  return cast(x, bf16);
}

/// Products of bf16 numbers are exact in f32.
Value dot_in_bf16(const Node& dot, std::span<const Value> operands) {
  return DotAxes(dot).dot(cast(narrowed(operands[0]), f32), cast(narrowed(operands[1]), f32));
}

/// Queries, keys and values in bf16; the op computes in f32 and rounds its result.
Value attention_in_bf16(const Node& node, std::span<const Value> operands) {
  Values all(operands.begin(), operands.end());
  for (std::size_t i = 0; i < 3; ++i) all[i] = narrowed(all[i]);
  return cast(emit(all[0].graph(), *node.op, node.attrs, all)[0], f32);
}

constexpr double smallest = 1e-30;  // a row of equal numbers has a scale too, whose inverse f32 holds

/// The shape without `axes`.
Dims beside(Value x, const Ints& axes) {
  Dims shape;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) shape.push_back(x.dim(i));
  return shape;
}

/// Numbers q of i8, scales and offsets with x = q * scale + offset, the same for all elements along `axes`; scales and offsets are without
/// those axes.
struct Quantised {
  Value numbers, scales, offsets;
};

/// Values with an axis for each of `axes`, in that order, lying along them: as x's shape says, but 1 elsewhere.
Value along(Value values, Value x, const Ints& axes) {
  Ints order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return axes[static_cast<std::size_t>(a)] < axes[static_cast<std::size_t>(b)]; });
  Dims shape(static_cast<std::size_t>(x.rank()), 1);
  for (std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = x.dim(axis);
  return reshape(transpose(values, order), shape);
}

/// Weights: the numbers are symmetric, without offsets, as sums over offsets would need the other operand's.
Quantised symmetric(Value x, const Ints& axes) {
  constexpr double largest = 127;
  const Value size = max(reduce_max(abs(x), axes, true), like(x, smallest));
  return {cast(round(x * (largest / size)), i8), reshape(size / largest, beside(x, axes)), Value()};
}

/// Activations: each row uses all 256 numbers, from its least element to its largest; those behind a GELU are hardly ever negative. Halves
/// are subtracted, as the distance of two elements may be beyond the largest f32.
Quantised spread(Value x, const Ints& axes) {
  constexpr double lowest = -128, steps = 255;
  const Value least = reduce_min(x, axes, true) * 0.5, half = max(reduce_max(x, axes, true) * 0.5 - least, like(x, smallest));
  const Dims shape = beside(x, axes);
  return {cast(round((x * 0.5 - least) * (steps / half) + lowest), i8), reshape(half / (steps / 2), shape),
          reshape((least - half * (lowest / steps)) * 2, shape)};
}

/// The numbers that an activation is multiplied and its weights are divided by, of the shape of the contracted axes. Elements that stand
/// far out of an activation's row meet small weights in trained models: these factors bring both nearer to their neighbours, so that fewer
/// of the 256 numbers are spent on them. The fourth root of the weights' sizes, as with the square root the steps of the weights grow by
/// more than is won. A weight that is no number has no say, so that it spoils its own column only.
Value balance_of(Value weights, const Ints& contracted) {
  Ints others;
  for (std::int64_t axis = 0; axis < weights.rank(); ++axis)
    if (std::find(contracted.begin(), contracted.end(), axis) == contracted.end()) others.push_back(axis);
  Ints order;  // reduce_max leaves the axes as they lie
  for (std::int64_t axis : contracted)
    order.push_back(std::count_if(contracted.begin(), contracted.end(), [&](std::int64_t other) { return other < axis; }));
  const Value sizes = abs(weights), finite = select(le(sizes, like(sizes, std::numeric_limits<float>::max())), sizes, like(sizes, 0));
  const Value largest = transpose(reduce_max(finite, others), order);
  Ints all_axes(contracted.size());
  std::iota(all_axes.begin(), all_axes.end(), 0);
  const Value share = largest / max(reduce_max(largest, all_axes), like(weights, smallest));  // at most 1: no activation overflows
  return sqrt(sqrt(max(share, like(weights, smallest))));
}

Value dot_in_int8(const Node& dot, std::span<const Value> operands) {
  const DotAxes axes(dot);
  const Value balance = balance_of(operands[1], axes.rhs_contract);
  const Quantised rows = spread(operands[0] * along(balance, operands[0], axes.lhs_contract), axes.lhs_contract),
                  columns = symmetric(operands[1] / along(balance, operands[1], axes.rhs_contract), axes.rhs_contract);
  const Value total = cast(axes.dot(cast(rows.numbers, i32), cast(columns.numbers, i32)), f32);
  const Value sums = cast(sum(cast(columns.numbers, i32), axes.rhs_contract), f32);
  Dims shape = rows.scales.shape();
  shape.resize(shape.size() + columns.scales.shape().size(), 1);
  return total * columns.scales * reshape(rows.scales, shape) + reshape(rows.offsets, shape) * (sums * columns.scales);
}

class PrecisionPass {
 public:
  PrecisionPass(const Graph& graph, Precision precision, bool is_region, std::vector<PrecisionChoice>& choices)
      : graph_(graph),
        precision_(precision),
        is_region_(is_region),
        choices_(choices),
        invariant_(run_invariant_nodes(graph)),
        out_(graph) {}

  /// Whether the policy decides over the op. All others keep their types.
  static bool decides(const Graph&, const Node& node) { return row_of(node) != nullptr; }

  Graph run() {
    const auto in_region = [this](const Graph& region) { return PrecisionPass(region, precision_, true, choices_).run(); };
    for (std::int32_t id : out_.needed()) {
      const Node& node = graph_.node(id);
      const Row* row = row_of(node);
      if (row && node.results[0].dtype == f32) product(id, *row);
      else out_.replace(id, emit(out_.data(), *node.op, map_regions(node.attrs, in_region), out_.operands(id)));
    }
    return out_.finish();
  }

 private:
  using Refusal = std::string_view (PrecisionPass::*)(const Node&) const;
  using Rewrite = Value (*)(const Node&, std::span<const Value>);
  /// How an op is computed in a precision: why a node stays f32 (empty: it does not), and what becomes of it.
  struct Way {
    Refusal refusal = nullptr;
    Rewrite rewrite = nullptr;
  };
  struct Row {
    std::string_view op;
    Way bf16, int8;
  };

  static const Row* row_of(const Node& node) {
    static constexpr std::array<Row, 3> table{{
        {"attention", {&PrecisionPass::always, attention_in_bf16}, {&PrecisionPass::no_weight, nullptr}},
        {"dot", {&PrecisionPass::not_worth_it, dot_in_bf16}, {&PrecisionPass::not_worth_int8, dot_in_int8}},
        {"conv", {&PrecisionPass::no_kernel, nullptr}, {&PrecisionPass::no_kernel, nullptr}},
    }};
    const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.op == node.op->name; });
    return row == table.end() ? nullptr : &*row;
  }

  void product(std::int32_t id, const Row& row) {
    const Node& node = graph_.node(id);
    const Way& way = precision_ == Precision::bf16 ? row.bf16 : row.int8;
    const std::string_view reason = (this->*way.refusal)(node);
    choices_.push_back(
        {fmt::format("{}: {} x {}", row.op, graph_.type(node.operands[0]).to_string(), graph_.type(node.operands[1]).to_string()),
         reason.empty() ? precision_ : Precision::f32, reason});
    if (!reason.empty()) return out_.copy(id);
    out_.replace(id, {way.rewrite(node, out_.operands(id))});
  }

  std::string_view always(const Node&) const { return ""; }
  std::string_view no_weight(const Node&) const { return "no operand is a weight"; }
  std::string_view no_kernel(const Node&) const { return "no narrow kernel computes it"; }

  std::string_view not_worth_int8(const Node& dot) const {
    constexpr std::int64_t deepest = (std::int64_t{1} << 31) / (128 * 128);  // so many products fit into an i32
    if (std::string_view reason = not_worth_it(dot); !reason.empty()) return reason;
    if (!is_invariant(dot.operands[1])) return is_invariant(dot.operands[0]) ? "its weight is the left operand" : no_weight(dot);
    if (graph_.type(dot.operands[1]).size() == Dim(0)) return "its weight has no elements";
    if (!DotAxes(dot).lhs_batch.empty()) return "a weight for each item of a batch";
    return depth(dot) >= deepest ? "its sums could leave 32 bits" : "";
  }

  /// Why a dot stays f32 in any case.
  std::string_view not_worth_it(const Node& dot) const {
    if (is_invariant(dot.operands[0]) && is_invariant(dot.operands[1])) return "it is computed once";
    if (is_region_ && comes_from_outside(dot.operands[1])) return "its weight would be rounded in every step";
    return depth(dot) < 16 ? "it sums fewer than 16 products" : "";
  }

  std::int64_t depth(const Node& dot) const {
    Dim product = 1;
    for (std::int64_t axis : DotAxes(dot).lhs_contract) product = product * graph_.type(dot.operands[0]).dim(axis);
    return product.upper();
  }
  bool is_invariant(ValueId v) const { return invariant_[static_cast<std::size_t>(v.node)]; }
  bool comes_from_outside(ValueId v) const {
    while (graph_.node(v.node).op->sources && graph_.node(v.node).operands.size() == 1) v = graph_.node(v.node).operands[0];
    return is_input(graph_.node(v.node));
  }

  const Graph& graph_;
  Precision precision_;
  bool is_region_;
  std::vector<PrecisionChoice>& choices_;
  std::vector<bool> invariant_;
  Rebuilder out_;
};

}  // namespace

PreciseGraph with_precision(const Graph& graph, Precision precision) {
  if (precision == Precision::f32) return {graph, {}};
  std::vector<PrecisionChoice> choices;
  Graph result = PrecisionPass(expand(graph, PrecisionPass::decides), precision, false, choices).run();
  return {std::move(result), std::move(choices)};
}

}  // namespace rlx
