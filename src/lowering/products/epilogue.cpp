#include "lowering/products/epilogue.h"

#include <algorithm>
#include <span>

#include "lowering/products/strided_view.h"

namespace rlx {
namespace {

using At = std::vector<Index>;
using Users = std::map<ValueId, std::vector<std::int32_t>>;

/// The nodes that read `value`.
std::span<const std::int32_t> readers(const Users& users, ValueId value) {
  const auto it = users.find(value);
  return it == users.end() ? std::span<const std::int32_t>() : it->second;
}

/// The earliest node that reads the region and is not part of it, or -1.
std::int32_t next_reader(const Users& users, const std::vector<ValueId>& region, const TilePlaces& at_of) {
  std::int32_t next = -1;
  for (ValueId v : region)
    for (std::int32_t user : readers(users, v))
      if (!at_of.count({user, 0}) && (next < 0 || user < next)) next = user;
  return next;
}

/// Where the node has the element that its operands in the region have; nothing where it moves it to no one place, or they disagree.
std::optional<At> place_in(const Graph& graph, const Node& node, const TilePlaces& at_of) {
  std::optional<At> where;
  for (ValueId operand : node.operands) {
    const auto it = at_of.find(operand);
    if (it == at_of.end()) continue;
    auto mine = node.op->kind == OpKind::scalar ? std::optional(it->second) : follow(graph, node, it->second);
    if (!mine || (where && !(*where == *mine))) return std::nullopt;
    where = std::move(mine);
  }
  return where;
}

}  // namespace

std::vector<ValueId> epilogue_region(const Graph& graph, ValueId dot, const Users& users, const std::function<bool(ValueId)>& must_store,
                                     const std::function<bool(ValueId)>& is_taken) {
  constexpr std::size_t longest = 64;
  Kernel scratch;
  TilePlaces at_of{{dot, element_variables(scratch, graph.type(dot).shape)}};
  std::vector<ValueId> region{dot}, best;
  // Whole when every value but the last is read inside only.
  const auto is_read_inside = [&](ValueId v) {
    return !must_store(v) && std::ranges::all_of(readers(users, v), [&](std::int32_t user) { return at_of.count({user, 0}) > 0; });
  };
  while (region.size() < longest) {
    const ValueId next{next_reader(users, region, at_of), 0};
    if (next.node < 0 || is_taken(next)) break;
    const Node& node = graph.node(next.node);
    if (node.results.size() != 1 || !can_generate(node.results[0].dtype)) break;
    auto where = place_in(graph, node, at_of);
    if (!where) break;
    at_of[next] = std::move(*where);
    if (std::ranges::all_of(region, is_read_inside)) best = region, best.push_back(next);
    region.push_back(next);
    if (must_store(next)) break;
  }
  return best;
}

std::optional<TilePlaces> places_of(const Graph& graph, ValueId dot, At at, const std::vector<ValueId>& region) {
  TilePlaces at_of{{dot, std::move(at)}};
  for (ValueId value : region) {
    if (value == dot) continue;
    const Node& node = graph.node(value.node);
    for (ValueId operand : node.operands)
      if (auto it = at_of.find(operand); it != at_of.end()) {
        if (node.op->kind == OpKind::scalar) at_of[value] = it->second;
        else if (auto where = follow(graph, node, it->second)) at_of[value] = *where;
        else return std::nullopt;
        break;
      }
  }
  return at_of;
}

bool read_tile(Kernel& kernel, ValueId dot, const Index& dot_index, const Index& tile_index, DType sum) {
  for (Expr& e : kernel.exprs) {
    if (e.kind == Expr::Kind::reduce) return false;
    if (e.kind != Expr::Kind::load || !(kernel.buffers[static_cast<std::size_t>(e.buffer)].value == dot)) continue;
    if (!(e.index == dot_index)) return false;
    e.index = tile_index;
    e.dtype = kernel.buffers[static_cast<std::size_t>(e.buffer)].dtype = sum;
  }
  return true;
}

void round_sums(Kernel& kernel, ValueId sums, DType dtype) {
  rewrite(kernel, [&](Expr e) {
    const bool is_sum = e.kind == Expr::Kind::load && kernel.buffers[static_cast<std::size_t>(e.buffer)].value == sums;
    const ExprId id = kernel.add(std::move(e));
    return is_sum ? kernel.scalar(ScalarOp::cast, {id}, dtype) : id;
  });
}

}  // namespace rlx
