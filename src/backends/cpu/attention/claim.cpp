#include "backends/cpu/attention/claim.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "backends/cpu/attention/run.h"
#include "backends/cpu/machine/level_of.h"
#include "ir/rearranges.h"
#include "lowering/attributes.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t most_features = 1024;  // the queries and sums of a block stay in a second-level cache

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

/// An operand that is broadcast to more axes: strides of 0 in front.
StridedOperand with_axes(StridedOperand operand, std::size_t axes) {
  operand.strides.insert(operand.strides.begin(), axes - operand.strides.size(), Dim(0));
  return operand;
}

Attention with_sizes(const Graph& graph, const Operands& operands) {
  const Dims &q = graph.type(operands.q).shape, &k = graph.type(operands.k).shape;
  const std::size_t batch = q.size() - 3;
  Attention a;
  a.batch.assign(q.begin(), q.end() - 3);
  a.heads = q[batch], a.kv_heads = k[batch], a.queries = q[batch + 1], a.keys = k[batch + 1], a.head_size = q.back();
  a.value_size = graph.type(operands.v).shape.back();
  return a;
}

/// The value, or that whose rows a table names for it, several times each: that is what to store.
ValueId unrepeated(const Graph& graph, ValueId value, const Puller::IsStored& is_stored) {
  ValueId from = value;
  bool repeats = false;
  for (const Node* node = &graph.node(from.node); !repeats && rearranges(graph.data(), *node); node = &graph.node(from.node))
    repeats = node->operands.size() > 1, from = node->operands[0];
  return repeats && !is_stored(from) ? from : value;
}

/// Fills the views of the operands. The value that must be stored first, where one is no view of a stored one.
std::optional<ValueId> read_operands(const Graph& graph, const Operands& operands, const Puller::IsStored& is_stored, Attention& a) {
  const auto q = strided(graph, operands.q, is_stored);
  if (!q) return operands.q;
  auto k = stored_rows(graph, operands.k, is_stored), v = stored_rows(graph, operands.v, is_stored);
  if (!k) return unrepeated(graph, operands.k, is_stored);
  if (!v) return unrepeated(graph, operands.v, is_stored);
  a.q = *q, a.k = k->elements, a.k_scales = k->scales, a.v = v->elements, a.v_scales = v->scales;
  if (graph.type(a.k.value).dtype != graph.type(a.v.value).dtype) return is_stored(operands.k) ? operands.v : operands.k;
  const std::size_t axes = a.batch.size();
  for (const auto& [value, into, into_axes] :
       {std::tuple{operands.mask, &a.mask, axes + 3}, {operands.bias, &a.bias, axes + 3}, {operands.positions, &a.positions, axes + 1}}) {
    if (!value) continue;
    const auto view = strided(graph, *value, is_stored);
    if (!view) return value;
    *into = with_axes(*view, into_axes);
  }
  return std::nullopt;
}

bool takes(const Graph& graph, const Node& node) {
  if (node.op->name != "attention") return false;
  const Operands operands(node);
  const DType dtype = graph.type(operands.q).dtype;
  if ((dtype != f32 && dtype != bf16) || graph.type(operands.k).dtype != dtype || graph.type(operands.v).dtype != dtype) return false;
  const auto is_position = [&](ValueId v) { return graph.type(v).dtype == i32 || graph.type(v).dtype == i64; };
  return (!operands.bias || graph.type(*operands.bias).dtype == f32) && (!operands.positions || is_position(*operands.positions)) &&
         graph.type(operands.q).shape.back().upper() <= most_features && graph.type(operands.v).shape.back().upper() <= most_features;
}

/// The moves of elements (reshapes, permutations) that follow the op and that nobody reads before the last; the kernel stores straight
/// where they lead. Begins with the op's own result.
std::vector<ValueId> region_of(const Graph& graph, ValueId op, const std::map<ValueId, std::vector<std::int32_t>>& users,
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

/// Sees the operands as views of stored values. Nothing when one is not: it must be stored first (`blocker` says which).
std::optional<Attention> as_attention(const Graph& graph, const std::vector<ValueId>& region, const Puller::IsStored& is_stored,
                                      ValueId& blocker) {
  const Node& node = graph.node(region[0].node);
  const Operands operands(node);
  Attention a = with_sizes(graph, operands);
  a.node = region[0], a.result = region.back();
  if (const auto missing = read_operands(graph, operands, is_stored, a)) return blocker = *missing, std::nullopt;
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

/// The scores that the masks of positions leave: pairs of a query and a key. Where positions are an operand, all.
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

class Attentions final : public GraphClaim {
 public:
  explicit Attentions(Draft& draft) : draft_(draft) {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(draft.graph.size()); ++id) {
      const Node& node = draft.graph.node(id);
      if (!draft.cut.live(id) || !takes(draft.graph, node)) continue;
      regions_.push_back(region_of(draft.graph, {id, 0}, draft.cut.users(), [&](ValueId v) { return draft.cut.must_store(v); }));
      draft.cut.store(regions_.back().back());
      draft.reads_moved.insert(id);
    }
  }

  void store_operands() override {
    for (const auto& region : regions_) view_operands(region);
  }
  std::vector<std::vector<ValueId>> regions() const override { return regions_; }
  void build() override {
    for (const auto& region : regions_) built_.emplace(region.back(), view_operands(region));
  }
  std::optional<Launch> launch(ValueId value) override {
    const auto attention = built_.find(value);
    return attention == built_.end() ? std::nullopt : std::optional(launch_of(attention->second));
  }

 private:
  /// Operands that are no views of stored values are stored.
  Attention view_operands(const std::vector<ValueId>& region) {
    ValueId blocker;
    while (true) {
      if (auto attention = as_attention(draft_.graph, region, draft_.stored_test(), blocker)) return std::move(*attention);
      if (!draft_.cut.store(blocker)) fail_internal("attention: its operand {} stays unreadable", blocker.node);
    }
  }

  Launch launch_of(const Attention& attention) const {
    std::vector<ValueId> reads{attention.q.value, attention.k.value, attention.v.value};
    for (const auto* operand : {&attention.mask, &attention.bias, &attention.positions})
      if (*operand) reads.push_back((*operand)->value);
    for (const auto* scales : {&attention.k_scales, &attention.v_scales})
      if (*scales) reads.push_back((*scales)->operand.value);
    for (const auto* operand : {&attention.k, &attention.v})
      if (operand->pages) reads.push_back(operand->pages->value);
    Launch launch = launch_with("attention", attention.node, std::move(reads), {attention.result}, attention);
    launch.arithmetic = draft_.graph.type(attention.result).dtype == bf16 && multiplies_bf16(level_of(draft_.target)) ? "bf16" : "f32";
    return launch;
  }

  Draft& draft_;
  std::vector<std::vector<ValueId>> regions_;  // the op and the moves behind it
  std::map<ValueId, Attention> built_;         // by the value that is stored
};

struct AttentionClaim final : Claim {
  bool takes(const Graph& graph, const Node& node, const Caps& /*caps*/) const override { return cpu::takes(graph, node); }
  bool reads_views() const override { return true; }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override { return std::make_unique<Attentions>(draft); }
};

}  // namespace

double Attention::flops(const Graph& /*graph*/, const Bindings& bindings) const {
  return 2 * static_cast<double>((head_size + value_size).evaluate(bindings)) * visible_scores(*this, bindings);
}

const Claim& attention_claim() {
  static const AttentionClaim claim;
  return claim;
}

}  // namespace rlx::cpu
