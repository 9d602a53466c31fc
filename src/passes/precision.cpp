#include "passes/precision.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "ir/array_type.h"
#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/rearranges.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "ops/contraction/convolution.h"
#include "ops/contraction/dot_axes.h"
#include "ops/scalar/scalar.h"
#include "passes/expand.h"
#include "passes/quantize.h"
#include "passes/run_invariant.h"

namespace rlx {
namespace {

/// What the ops before x move the elements of.
const Node& moved(const GraphData& graph, const Node& node) {
  return rearranges(graph, node) ? moved(graph, graph.node(node.operands[0].node)) : node;
}

/// x as bf16, rounded below the ops that move its elements: so what is stored is narrow, and lies as the wide value would. A claim's result
/// is moved as it stores it.
Value narrowed(Value x) {
  GraphData& graph = x.graph();
  const Node& node = graph.node(x.id().node);
  if (node.op->scalar == static_cast<int>(ScalarOp::cast) && graph.type(node.operands[0]).dtype == bf16)
    return Value(&graph, node.operands[0]);
  const Node& from = moved(graph, node);
  const bool reads_table = node.operands.size() > 1 && is_input(from);  // all of which would be rounded for some of its rows
  if (!rearranges(graph, node) || reads_table || from.op->kind == OpKind::composite) return cast(x, bf16);
  Values operands;
  for (ValueId v : node.operands) operands.emplace_back(&graph, v);
  operands[0] = narrowed(operands[0]);
  return emit(graph, *node.op, node.attrs, operands)[0];
}

/// The scales of a calibration, given out in the order of the products that they were found for.
class CalibratedRanges {
 public:
  CalibratedRanges(const Graph& graph, const Calibration& calibration) : graph_(graph), calibration_(calibration) {}

  const CalibratedRange& of(const std::string& product, const WeightedProduct& weighted) {
    if (next_ == calibration_.ranges.size())
      fail("calibration: it has {} products, but graph '{}' has another: '{}'", next_, graph_.name(), product);
    const CalibratedRange& range = calibration_.ranges[next_++];
    if (range.product != product)
      fail("calibration: product {} of graph '{}' is '{}', but the calibration was made for '{}'", next_ - 1, graph_.name(), product,
           range.product);
    Type wanted{f32, {}};
    for (std::int64_t axis : weighted.left_places) wanted.shape.push_back(weighted.left.dim(axis));
    for (const Array* ends : {&range.least, &range.largest}) {
      const Type given = type_of(*ends);
      if (!(given == wanted)) fail("calibration: ranges of '{}' are {}, must be {}", product, given.to_string(), wanted.to_string());
    }
    return range;
  }

  void check_all_used() const {
    if (next_ != calibration_.ranges.size())
      fail("calibration: it has {} products, but graph '{}' has {}", calibration_.ranges.size(), graph_.name(), next_);
  }

 private:
  const Graph& graph_;
  const Calibration& calibration_;
  std::size_t next_ = 0;
};

class PrecisionPass {
 public:
  enum class Part : std::uint8_t { calibrated, main, region };  // calibrated: also while ranges are noted
  /// `ranges`: of int8 products that are calibrated.
  PrecisionPass(const Graph& graph, Precision precision, Part part, CalibratedRanges* ranges, std::vector<PrecisionChoice>& choices)
      : graph_(graph),
        precision_(precision),
        part_(part),
        ranges_(ranges),
        choices_(choices),
        invariant_(run_invariant_nodes(graph)),
        rebuilt_(graph.size(), false),
        out_(graph) {
    for (std::int32_t id : out_.needed())
      if (is_int8_product(graph.node(id))) readers_[left_of(graph.node(id))].push_back(id);
  }

  /// Whether the policy decides over the op. All others keep their types.
  static bool decides(const Graph&, const Node& node) { return row_of(node) != nullptr; }

  Graph run() {
    for (std::int32_t id : out_.needed()) rebuild(id);
    return out_.finish();
  }

  /// The graph as it is, with two more outputs for each product that int8 takes.
  NotedGraph note_ranges() {
    std::vector<std::pair<Value, Value>> ranges;
    std::vector<std::string> products;
    for (std::int32_t id : out_.needed()) {
      const Node& node = graph_.node(id);
      out_.copy(id);
      if (!is_int8_product(node)) continue;
      ranges.push_back(range_of(weighted_product(node, out_.operands(id))));
      products.push_back(text_of(node));
    }
    NotedGraph noted{out_.finish(), std::move(products)};
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      noted.graph.output(noted_name(i, "least"), ranges[i].first);
      noted.graph.output(noted_name(i, "largest"), ranges[i].second);
    }
    return noted;
  }

 private:
  using Refusal = std::string_view (PrecisionPass::*)(const Node&) const;
  using Rewrite = Value (PrecisionPass::*)(const Node&, std::span<const Value>);
  /// How an op is computed under a policy: why a node stays f32 (empty: it does not), what becomes of it, and the precision of that.
  struct Way {
    Refusal refusal = nullptr;
    Rewrite rewrite = nullptr;
    Precision precision = Precision::f32;
  };
  struct Row {
    std::string_view op;
    Way bf16, f16, int8;
  };

  static const Row* row_of(const Node& node) {
    using P = PrecisionPass;
    static constexpr Way blocks{&P::in_blocks}, none{&P::no_weight};
    static constexpr Way attention{&P::keys_kept_otherwise, &P::attention_in_bf16, Precision::bf16};
    static constexpr Way narrow{&P::not_worth_it, &P::product_in_bf16, Precision::bf16};
    static constexpr Way half{&P::not_worth_f16, &P::product_in_f16, Precision::f16};
    static constexpr Way integer{&P::not_worth_int8, &P::product_in_int8, Precision::int8};
    static constexpr std::array<Row, 5> table{{{"attention", attention, none, attention},
                                               {"block_dot", blocks, blocks, blocks},
                                               {"grouped_block_dot", blocks, blocks, blocks},
                                               {"dot", narrow, half, integer},
                                               {"conv", narrow, half, integer}}};
    const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.op == node.op->name; });
    return row == table.end() ? nullptr : &*row;
  }

  static const Row* decided(const Node& node) { return node.results[0].dtype == f32 ? row_of(node) : nullptr; }

  /// Whether the policy of int8 makes a product of integers of it.
  bool is_int8_product(const Node& node) const {
    const Row* row = decided(node);
    return row && row->int8.precision == Precision::int8 && (this->*row->int8.refusal)(node).empty();
  }

  /// What a product reads on its left, and along which axes: those of one op that agree in it may round it once.
  using Left = std::tuple<const OpDef*, ValueId, std::vector<std::int64_t>>;
  static Left left_of(const Node& product) {
    if (is_conv(product)) return {product.op, product.operands[0], {conv_options(product.attrs).lhs_spec[1]}};
    return {product.op, product.operands[0], DotAxes(product).lhs_contract};
  }

  std::string text_of(const Node& node) const {
    return fmt::format("{}: {} x {}", node.op->name, graph_.type(node.operands[0]).to_string(), graph_.type(node.operands[1]).to_string());
  }

  void rebuild(std::int32_t id) {
    if (rebuilt_[static_cast<std::size_t>(id)]) return;
    rebuilt_[static_cast<std::size_t>(id)] = true;
    const auto in_region = [this](const Graph& region) { return PrecisionPass(region, precision_, Part::region, nullptr, choices_).run(); };
    const Node& node = graph_.node(id);
    if (const Row* row = decided(node)) product(id, *row);
    else if (!moves_attention(node)) out_.replace(id, emit(out_.data(), *node.op, map_regions(node.attrs, in_region), out_.operands(id)));
    else out_.replace(id, {moved_attention(node, out_.value(node.operands[0]))});
  }

  bool moves_attention(const Node& node) const {
    return node.op->sources && node.operands.size() == 1 && moved(graph_.data(), node).op->name == "attention";
  }
  /// Widened behind what moves its elements, if it was rounded: the claim stores it where they lead.
  Value moved_attention(const Node& node, Value x) const {
    const Node& cast_of = out_.data().node(x.id().node);
    const bool widened = cast_of.op->scalar == static_cast<int>(ScalarOp::cast);
    const Value from = widened ? Value(&out_.data(), cast_of.operands[0]) : x;
    return cast(emit(out_.data(), *node.op, node.attrs, {&from, 1})[0], x.dtype());
  }

  void product(std::int32_t id, const Row& row) {
    const Node& node = graph_.node(id);
    const Way& way = precision_ == Precision::bf16 ? row.bf16 : precision_ == Precision::f16 ? row.f16 : row.int8;
    const std::string_view reason = (this->*way.refusal)(node);
    choices_.push_back({text_of(node), reason.empty() ? way.precision : Precision::f32, reason});
    if (!reason.empty()) return out_.copy(id);
    out_.replace(id, {(this->*way.rewrite)(node, out_.operands(id))});
  }

  /// A dot or a conv. Products of bf16 numbers are exact in f32.
  Value product_in_bf16(const Node& node, std::span<const Value> operands) {
    const Value rounded[] = {cast(narrowed(operands[0]), f32), cast(narrowed(operands[1]), f32)};
    return emit(out_.data(), *node.op, node.attrs, rounded)[0];
  }

  /// Queries, keys and values in bf16; the op computes in f32 and rounds its result.
  Value attention_in_bf16(const Node& node, std::span<const Value> operands) {
    Values all(operands.begin(), operands.end());
    for (std::size_t i = 0; i < 3; ++i) all[i] = narrowed(all[i]);
    return cast(emit(out_.data(), *node.op, node.attrs, all)[0], f32);
  }

  /// The weight is rounded; products of it are sums in f32, as exact as those of f32 weights.
  Value product_in_f16(const Node& node, std::span<const Value> operands) {
    const WeightedProduct weighted = weighted_product(node, operands);
    const HalfWeight half = in_f16(weighted);
    const Value widened[] = {operands[0], cast(half.numbers, f32)};
    return emit(out_.data(), *node.op, node.attrs, widened)[0] * weighted.by_column(half.scales);
  }

  Value product_in_int8(const Node& node, std::span<const Value> operands) {
    const WeightedProduct weighted = weighted_product(node, operands);
    const Value largest = largest_weights_beside(node);
    return ranges_ ? in_int8(weighted, largest, ranges_->of(text_of(node), weighted)) : in_int8(weighted, largest);
  }

  /// The largest weights of all int8 products that read the same left operand.
  Value largest_weights_beside(const Node& product) {
    Value largest;
    for (std::int32_t id : readers_.at(left_of(product))) {
      const ValueId weight = graph_.node(id).operands[1];
      for (std::int32_t part : needed_nodes(graph_.data(), {&weight, 1})) rebuild(part);  // the weights of a later product
      const Value own = largest_weights(weighted_product(graph_.node(id), out_.operands(id)));
      largest = largest ? max(largest, own) : own;
    }
    return largest;
  }

  /// Keys and values that are kept from run to run are read as they are, and widened there; as bf16 all of them would be stored again.
  std::string_view keys_kept_otherwise(const Node& attention) const {
    const auto widens = [&](const Node& node, DType type) {
      return node.op->scalar == static_cast<int>(ScalarOp::cast) && graph_.type(node.operands[0]).dtype == type;
    };
    const auto exact = std::ranges::find(attention.op->fields, "exact", &Field::name) - attention.op->fields.begin();
    if (std::get<bool>(attention.attrs[static_cast<std::size_t>(exact)])) return "it is to be exact";
    for (const std::size_t rows : {1U, 2U}) {
      const Node& node = moved(graph_.data(), graph_.node(attention.operands[rows].node));
      if (widens(node, f16)) return "its keys are f16";
      if (node.op->scalar == static_cast<int>(ScalarOp::mul) && widens(graph_.node(node.operands[0].node), i8)) return "its keys are int8";
      if (is_updated(node)) return "its keys are kept in f32";
    }
    return "";
  }
  /// Rows behind which new ones were put.
  static bool is_updated(const Node& node) { return node.op->name == "dynamic_update" || node.op->name == "scatter"; }
  std::string_view no_weight(const Node&) const { return "no operand is a weight"; }
  std::string_view in_blocks(const Node&) const { return "its weights are blocks"; }

  /// Why a product has no weight whose columns can have scales, or stays f32 in any case.
  std::string_view not_a_weighted_product(const Node& product) const {
    if (std::string_view reason = not_worth_it(product); !reason.empty()) return reason;
    if (is_state(product.operands[1])) return "its weight is a state, which runs may change: it would be rounded in every run";
    if (!is_invariant(product.operands[1]))
      return is_invariant(product.operands[0]) ? "its weight is the left operand" : no_weight(product);
    if (graph_.type(product.operands[1]).size() == Dim(0)) return "its weight has no elements";
    return !is_conv(product) && !DotAxes(product).lhs_batch.empty() ? "a weight for each item of a batch" : "";
  }

  /// Few columns are a small weight beside rows that are read as f32 in any case, which f32 takes as dot products.
  std::string_view not_worth_f16(const Node& product) const {
    if (std::string_view reason = not_a_weighted_product(product); !reason.empty()) return reason;
    constexpr std::int64_t few_columns = 8;
    const bool is_few = !is_conv(product) && graph_.type(product.operands[1]).size().upper() <= few_columns * depth(product);
    return is_few ? "its columns are few" : "";
  }

  std::string_view not_worth_int8(const Node& product) const {
    constexpr std::int64_t deepest = (std::int64_t{1} << 31) / (128 * 128);  // so many products fit into an i32
    if (std::string_view reason = not_a_weighted_product(product); !reason.empty()) return reason;
    if (is_conv(product) && part_ != Part::calibrated && uses_of_element(product) < fewest_uses)
      return "its image's range takes longer than 8 bits save";
    return depth(product) >= deepest ? "its sums could leave 32 bits" : "";
  }

  /// In how many products each element of a conv's input is, on average. Below this many, to find the range of an image takes longer than
  /// its int8 product saves; see bench/conv --precision int8.
  static constexpr double fewest_uses = 100;
  double uses_of_element(const Node& conv) const {
    const auto size = [](const Type& type) { return static_cast<double>(type.size().upper()); };
    return size(conv.results[0]) * static_cast<double>(depth(conv)) / size(graph_.type(conv.operands[0]));
  }

  /// Why a product stays f32 in any case.
  std::string_view not_worth_it(const Node& product) const {
    if (is_invariant(product.operands[0]) && is_invariant(product.operands[1])) return "it is computed once";
    if (part_ == Part::region && comes_from_outside(product.operands[1])) return "its weight would be rounded in every step";
    const ConvForm form = form_of(product);
    if (form == ConvForm::loop) return "its windows are the rows of no matrix product";
    if (form == ConvForm::sums) return "its few products an element are fastest in f32";
    return depth(product) < 16 ? "it sums fewer than 16 products" : "";
  }

  /// As of a conv; a dot is one.
  ConvForm form_of(const Node& node) const {
    return is_conv(node) ? conv_form(node.attrs, graph_.type(node.operands[0]), graph_.type(node.operands[1])) : ConvForm::dot;
  }

  static bool is_conv(const Node& node) { return node.op->name == "conv"; }

  /// How many products a sum of it has, at most.
  std::int64_t depth(const Node& product) const {
    if (is_conv(product)) return terms(graph_.type(product.operands[1]), conv_options(product.attrs).rhs_spec, 1);
    return terms(graph_.type(product.operands[0]), DotAxes(product).lhs_contract, 0);
  }
  static std::int64_t terms(const Type& type, const std::vector<std::int64_t>& axes, std::size_t first) {
    Dim product = 1;
    for (std::size_t i = first; i < axes.size(); ++i) product = product * type.dim(axes[i]);
    return product.upper();
  }
  bool is_state(ValueId v) const {
    const Node& from = moved(graph_.data(), graph_.node(v.node));
    return is_input(from) && input_from(from.attrs).kind == InputKind::state;
  }
  bool is_invariant(ValueId v) const { return invariant_[static_cast<std::size_t>(v.node)]; }
  bool comes_from_outside(ValueId v) const {
    while (graph_.node(v.node).op->sources && graph_.node(v.node).operands.size() == 1) v = graph_.node(v.node).operands[0];
    return is_input(graph_.node(v.node));
  }

  const Graph& graph_;
  Precision precision_;
  Part part_;
  CalibratedRanges* ranges_;
  std::vector<PrecisionChoice>& choices_;
  std::vector<bool> invariant_, rebuilt_;
  std::map<Left, std::vector<std::int32_t>> readers_;  // the int8 products of each left operand
  Rebuilder out_;
};

}  // namespace

std::string noted_name(std::size_t product, std::string_view end) { return fmt::format("calibration {} {}", product, end); }

PreciseGraph with_precision(const Graph& graph, Precision precision, const Calibration* calibration, const IsClaimed& is_claimed) {
  if (precision == Precision::f32) return {graph, {}};
  std::vector<PrecisionChoice> choices;
  std::optional<CalibratedRanges> ranges;
  if (calibration) ranges.emplace(graph, *calibration);
  const Graph expanded =
      expand(graph, [&](const Graph& in, const Node& node) { return PrecisionPass::decides(in, node) || is_claimed(in, node); });
  Graph result = PrecisionPass(expanded, precision, ranges ? PrecisionPass::Part::calibrated : PrecisionPass::Part::main,
                               ranges ? &*ranges : nullptr, choices)
                     .run();
  if (ranges) ranges->check_all_used();
  return {std::move(result), std::move(choices)};
}

NotedGraph with_ranges_noted(const Graph& graph) {
  std::vector<PrecisionChoice> choices;
  const Graph expanded = expand(graph, PrecisionPass::decides);
  return PrecisionPass(expanded, Precision::int8, PrecisionPass::Part::calibrated, nullptr, choices).note_ranges();
}

}  // namespace rlx
