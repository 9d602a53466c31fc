// Claims nodes that say where the elements of an operand belong, and launches kernels that store them there.
#include <algorithm>

#include "ir/op.h"
#include "lowering/kernels_only/kernel_claims.h"

namespace rlx {
namespace {

std::vector<Index> add_loops(Kernel& kernel, const Dims& shape) {
  std::vector<Index> at;
  for (const Dim& extent : shape) {
    kernel.loops.push_back(kernel.add_variable(extent));
    at.push_back(Index::variable(kernel.loops.back(), extent));
  }
  return at;
}

/// One after the other: all of the result filled, unless every element of it is stored anyway, and then the elements of the first operand
/// where they belong.
std::vector<Kernel> destination_kernels(const Graph& graph, ValueId result, const Puller::IsStored& is_stored) {
  const Node& node = graph.node(result.node);
  const Type& type = graph.type(result);
  std::vector<Type> operands;
  for (ValueId operand : node.operands) operands.push_back(graph.type(operand));
  Kernel storing;
  Puller puller(graph, storing, is_stored);
  const ReadIndex read = [&](int operand, const std::vector<Index>& where, const std::optional<Dim>& limit) {
    return puller.read_index(node, operand, where, limit);
  };
  const std::vector<Index> at = add_loops(storing, operands[0].shape);
  const Destination to = node.op->destination(node.attrs, operands, type, at, read);
  const ExprId value = puller.pull(node.operands[0], at);
  storing.stores.push_back({puller.buffer_of(result, true), flatten(to.at, type.shape), value});
  if (operands[0].size() == type.size()) return {std::move(storing)};
  Kernel filling;
  const Index everywhere = flatten(add_loops(filling, type.shape), type.shape);
  const int buffer = Puller(graph, filling, is_stored).buffer_of(result, true);
  filling.stores.push_back({buffer, everywhere, filling.constant(to.fill, type.dtype)});
  return {std::move(filling), std::move(storing)};
}

bool has_destinations(const Draft& draft, const Node& node) {
  const auto has = [&](const Type& type) { return can_generate(type.dtype) && draft.target.caps.has(type.dtype); };
  return node.op->destination && has(node.results[0]) &&
         std::ranges::all_of(node.operands, [&](ValueId operand) { return has(draft.graph.type(operand)); });
}

/// Its nodes read what is stored, and are stored, as those of the host are.
struct Destinations final : GraphClaim {
  explicit Destinations(const Draft& of) : draft(of) {}

  std::optional<Launch> launch(ValueId value) override {
    const Node& node = draft.graph.node(value.node);
    if (!has_destinations(draft, node)) return std::nullopt;
    Launch launch;
    launch.reads = node.operands, launch.writes = {value};
    for (Kernel& kernel : destination_kernels(draft.graph, value, draft.stored_test()))
      launch.kernels.push_back(draft.generate(std::move(kernel)));
    launch.name = launch.kernels.back().short_name();
    return launch;
  }

  const Draft& draft;
};

struct DestinationClaim final : Claim {
  std::unique_ptr<GraphClaim> start(Draft& draft) const override { return std::make_unique<Destinations>(draft); }
};

}  // namespace

const Claim& destination_claim() {
  static const DestinationClaim claim;
  return claim;
}

}  // namespace rlx
