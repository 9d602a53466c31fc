#include "lowering/attention/attention_views.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ir/rearranges.h"
#include "lowering/attributes.h"

namespace rlx {

AttentionOperands::AttentionOperands(const Node& node) : q(node.operands[0]), k(node.operands[1]), v(node.operands[2]) {
  std::size_t next = 3;
  if (attribute<bool>(node, "has_mask")) mask = node.operands[next++];
  if (attribute<bool>(node, "has_bias")) bias = node.operands[next++];
  if (attribute<bool>(node, "has_positions")) positions = node.operands[next++];
}

namespace {

/// An operand that is broadcast to more axes: strides of 0 in front.
StridedOperand with_axes(StridedOperand operand, std::size_t axes) {
  operand.strides.insert(operand.strides.begin(), axes - operand.strides.size(), Dim(0));
  return operand;
}

AttentionViews with_sizes(const Graph& graph, const AttentionOperands& operands) {
  const Dims &q = graph.type(operands.q).shape, &k = graph.type(operands.k).shape;
  const std::size_t batch = q.size() - 3;
  AttentionViews a;
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
std::optional<ValueId> read_operands(const Graph& graph, const AttentionOperands& operands, const Puller::IsStored& is_stored,
                                     AttentionViews& a) {
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
std::optional<AttentionViews> as_attention(const Graph& graph, const std::vector<ValueId>& region, const Puller::IsStored& is_stored,
                                           ValueId& blocker) {
  const Node& node = graph.node(region[0].node);
  const AttentionOperands operands(node);
  AttentionViews a = with_sizes(graph, operands);
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
double visible_scores(const AttentionViews& attention, const Bindings& bindings) {
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

}  // namespace

AttentionClaimed::AttentionClaimed(Draft& draft, Takes takes, MakesLaunch launch_of) : draft_(draft), launch_of_(launch_of) {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(draft.graph.size()); ++id) {
    const Node& node = draft.graph.node(id);
    if (!draft.cut.live(id) || !takes(draft.graph, node)) continue;
    regions_.push_back(region_of(draft.graph, {id, 0}, draft.cut.users(), [&](ValueId v) { return draft.cut.must_store(v); }));
    draft.cut.store(regions_.back().back());
    draft.reads_moved.insert(id);
  }
}

void AttentionClaimed::store_operands() {
  for (const auto& region : regions_) view_operands(region);
}

void AttentionClaimed::build() {
  for (const auto& region : regions_) built_.emplace(region.back(), view_operands(region));
}

std::optional<Launch> AttentionClaimed::launch(ValueId value) {
  const auto attention = built_.find(value);
  return attention == built_.end() ? std::nullopt : std::optional(launch_of_(draft_, attention->second));
}

/// Operands that are no views of stored values are stored.
AttentionViews AttentionClaimed::view_operands(const std::vector<ValueId>& region) {
  ValueId blocker;
  while (true) {
    if (auto attention = as_attention(draft_.graph, region, draft_.stored_test(), blocker)) return std::move(*attention);
    if (!draft_.cut.store(blocker)) fail_internal("attention: its operand {} stays unreadable", blocker.node);
  }
}

std::vector<ValueId> AttentionViews::reads() const {
  std::vector<ValueId> all{q.value, k.value, v.value};
  for (const auto* operand : {&mask, &bias, &positions})
    if (*operand) all.push_back((*operand)->value);
  for (const auto* scales : {&k_scales, &v_scales})
    if (*scales) all.push_back((*scales)->operand.value);
  for (const auto* operand : {&k, &v})
    if (operand->pages) all.push_back(operand->pages->value);
  return all;
}

double AttentionViews::flops(const Graph& /*graph*/, const Bindings& bindings) const {
  return 2 * static_cast<double>((head_size + value_size).evaluate(bindings)) * visible_scores(*this, bindings);
}

}  // namespace rlx
