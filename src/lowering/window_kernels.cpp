#include "lowering/window_kernels.h"

#include <algorithm>

#include "ir/op.h"

namespace rlx {
namespace {

Kernel window_kernel(const Graph& graph, const Node& update, ValueId result, const Puller::IsStored& is_stored) {
  Kernel kernel;
  const Dims &window = graph.type(update.operands[1]).shape, &state = graph.type(result).shape;
  std::vector<Index> at;
  for (const Dim& extent : window) {
    kernel.loops.push_back(kernel.add_variable(extent));
    at.push_back(Index::variable(kernel.loops.back(), extent));
  }
  Puller puller(graph, kernel, is_stored);
  const ExprId value = puller.pull(update.operands[1], at);
  for (std::size_t axis = 0; axis < at.size(); ++axis)
    if (!(window[axis] == state[axis]))
      at[axis] = at[axis] + puller.read_index(update, static_cast<int>(axis) + 2, {}, state[axis] - window[axis] + Dim(1));
  kernel.stores.push_back({puller.buffer_of(result, true), flatten(at, state), value});
  return kernel;
}

}  // namespace

bool has_window_kernels(const StateUpdate& update) {
  return std::ranges::all_of(update.windows, [](const auto& each) { return std::holds_alternative<StateUpdate::Window>(each); });
}

std::vector<Kernel> window_kernels(const Graph& graph, const StateUpdate& update, const Puller::IsStored& is_stored) {
  std::vector<Kernel> kernels;
  for (std::size_t i = update.chain.size(); i-- > 0;)
    kernels.push_back(window_kernel(graph, graph.node(update.chain[i].node), update.result, is_stored));
  return kernels;
}

}  // namespace rlx
