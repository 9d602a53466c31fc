// Claims states that change where they lie: a kernel for each window, or for many in one value, computes it and stores it where it belongs.
#include <algorithm>

#include "ir/op.h"
#include "lowering/kernels_only/kernel_claims.h"
#include "lowering/state_update.h"

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

/// The extents of one of many windows, by axis of the state.
Dims extents_of(const Graph& graph, const StateUpdate::Windows& windows) {
  Dims extents(graph.type(windows.value).shape.begin() + 1, graph.type(windows.value).shape.end());
  for (const std::int64_t axis : windows.inserted) extents.insert(extents.begin() + axis, Dim(1));
  return extents;
}

/// Whether two of the windows overlap only where they begin at one place.
bool overlap_whole(const Graph& graph, const StateUpdate::Windows& windows) {
  const Dims extents = extents_of(graph, windows);
  return std::ranges::all_of(windows.axes, [&](std::int64_t axis) { return extents[static_cast<std::size_t>(axis)] == Dim(1); });
}

/// Windows that begin at one place store the numbers of the last of them, so that it does not matter which comes last.
class ManyWindows {
 public:
  ManyWindows(const Graph& graph, const Node& scatter, const StateUpdate::Windows& windows, const Puller::IsStored& is_stored)
      : scatter_(scatter), windows_(windows), state_(graph.type(scatter.operands[0]).shape), puller_(graph, kernel_, is_stored) {
    count_ = graph.type(windows.value).shape[0];
    extents_ = extents_of(graph, windows);
  }

  Kernel kernel(ValueId result) {
    const Index n = variable(count_, true);
    std::vector<Index> at, place;
    for (std::size_t axis = 0; axis < extents_.size(); ++axis) {
      const bool inserted = std::ranges::find(windows_.inserted, static_cast<std::int64_t>(axis)) != windows_.inserted.end();
      place.push_back(inserted ? Index(0) : variable(extents_[axis], true));
      if (!inserted) at.push_back(place.back());
    }
    at.insert(at.begin(), Index::loaded(last_at_place_of(n), count_));
    const ExprId value = puller_.pull(windows_.value, at);
    for (std::size_t k = 0; k < windows_.axes.size(); ++k) {
      Index& along = place[static_cast<std::size_t>(windows_.axes[k])];
      along = along + start(n, k);
    }
    kernel_.stores.push_back({puller_.buffer_of(result, true), flatten(place, state_), value});
    return std::move(kernel_);
  }

 private:
  Index variable(const Dim& extent, bool is_loop) {
    const int id = kernel_.add_variable(extent);
    if (is_loop) kernel_.loops.push_back(id);
    return Index::variable(id, extent);
  }
  /// Start `k` of window `n`, clamped.
  Index start(const Index& n, std::size_t k) {
    const auto axis = static_cast<std::size_t>(windows_.axes[k]);
    return puller_.read_index(scatter_, 1, {n, Index(static_cast<int>(k))}, state_[axis] - extents_[axis] + Dim(1));
  }
  ExprId number(const Index& index) {
    Expr e;
    e.kind = Expr::Kind::position;
    e.dtype = i64;
    e.index = index;
    return kernel_.add(std::move(e));
  }
  /// Of the windows that begin where `n` does.
  ExprId last_at_place_of(const Index& n) {
    const Index other = variable(count_, false);
    ExprId same = kernel_.constant(1, boolean);
    for (std::size_t k = 0; k < windows_.axes.size(); ++k)
      same = kernel_.scalar(ScalarOp::logical_and,
                            {same, kernel_.scalar(ScalarOp::eq, {number(start(n, k)), number(start(other, k))}, boolean)}, boolean);
    Expr last;
    last.kind = Expr::Kind::reduce;
    last.reduce = ReduceKind::max;
    last.dtype = i64;
    last.args = {kernel_.scalar(ScalarOp::select, {same, number(other), kernel_.constant(0, i64)}, i64)};
    last.variables = {static_cast<int>(kernel_.variables.size()) - 1};
    return kernel_.add(std::move(last));
  }

  const Node& scatter_;
  const StateUpdate::Windows& windows_;
  const Dims& state_;
  Dim count_;
  Dims extents_;
  Kernel kernel_;
  Puller puller_;
};

/// Kernels compute elements in any order, so not where windows of one value overlap in part.
bool has_kernels(const Graph& graph, const StateUpdate& update) {
  return std::ranges::all_of(update.windows, [&](const auto& each) {
    const auto* const many = std::get_if<StateUpdate::Windows>(&each);
    return !many || overlap_whole(graph, *many);
  });
}

/// The nodes of all such updates.
std::set<std::int32_t> updated_in_place(const Graph& graph) {
  std::set<std::int32_t> nodes;
  const auto is_state = [](const auto& input) { return input.first.kind == InputKind::state; };
  if (std::ranges::none_of(graph.inputs(), is_state)) return nodes;
  std::map<ValueId, std::vector<std::int32_t>> users;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id)
    for (ValueId operand : graph.node(id).operands) users[operand].push_back(id);
  for (const StateUpdate& update : state_updates(graph, users))
    if (has_kernels(graph, update))
      for (ValueId value : update.chain) nodes.insert(value.node);
  return nodes;
}

/// In the order of the windows.
std::vector<Kernel> window_kernels(const Graph& graph, const StateUpdate& update, const Puller::IsStored& is_stored) {
  std::vector<Kernel> kernels;
  for (std::size_t i = update.chain.size(); i-- > 0;) {
    const Node& node = graph.node(update.chain[i].node);
    const auto& each = update.windows[update.chain.size() - 1 - i];
    if (const auto* many = std::get_if<StateUpdate::Windows>(&each))
      kernels.push_back(ManyWindows(graph, node, *many, is_stored).kernel(update.result));
    else kernels.push_back(window_kernel(graph, node, update.result, is_stored));
  }
  return kernels;
}

Launch update_launch(const Draft& draft, const StateUpdate& update) {
  Launch launch;
  launch.reads = {update.state};
  launch.writes = {update.result};
  for (Kernel& kernel : window_kernels(draft.graph, update, draft.stored_test())) {
    for (const KernelBuffer& buffer : kernel.buffers)
      if (!buffer.written) launch.reads.push_back(buffer.value);
    launch.kernels.push_back(draft.generate(std::move(kernel)));
  }
  launch.name = launch.kernels[0].short_name();
  return launch;
}

struct WindowClaim final : Claim {
  std::set<std::int32_t> kept(const Graph& graph) const override { return updated_in_place(graph); }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override {
    const auto takes = [&](const StateUpdate& update) {
      return has_kernels(draft.graph, update) && draft.target.caps.has(draft.graph.type(update.state).dtype);
    };
    return claim_state_updates(draft, takes, [&draft](const StateUpdate& update) { return update_launch(draft, update); });
  }
};

}  // namespace

const Claim& window_claim() {
  static const WindowClaim claim;
  return claim;
}

}  // namespace rlx
