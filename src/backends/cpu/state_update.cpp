#include "backends/cpu/state_update.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/attributes.h"
#include "ir/op.h"

namespace rlx::cpu {
namespace {

/// Whether one node reads the value, and the caller does not.
bool has_one_reader(const Graph& graph, ValueId value, const std::map<ValueId, std::vector<std::int32_t>>& users) {
  const auto found = users.find(value);
  return found != users.end() && found->second.size() == 1 &&
         std::ranges::none_of(graph.outputs(), [&](const auto& output) { return output.second.id() == value; });
}

/// The windows of a scatter, where their elements lie side by side; nothing for one that combines or drops.
std::optional<StateUpdate::Windows> scattered(const Graph& graph, const Node& node) {
  using Ints = std::vector<std::int64_t>;
  if (attribute<std::string>(node, "op") != "set" || attribute<std::string>(node, "mode") != "clip" ||
      !attribute<Ints>(node, "operand_batching_dims").empty() || graph.type(node.operands[1]).shape.size() != 2)
    return std::nullopt;
  const Ints& inside = attribute<Ints>(node, "offset_dims");
  for (std::size_t i = 0; i < inside.size(); ++i)
    if (inside[i] != static_cast<std::int64_t>(i) + 1) return std::nullopt;
  return StateUpdate::Windows{node.operands[2], node.operands[1], attribute<Ints>(node, "start_index_map"),
                              attribute<Ints>(node, "collapsed_slice_dims")};
}

/// Walks from the state's next value back to the state.
std::optional<StateUpdate> update_of(const Graph& graph, ValueId state, ValueId next,
                                     const std::map<ValueId, std::vector<std::int32_t>>& users) {
  StateUpdate update{state, next, {}, {}};
  for (ValueId value = next; !(value == state);) {
    const Node& node = graph.node(value.node);
    const bool scatters = node.op->name == "scatter";
    if ((node.op->name != "dynamic_update" && !scatters) || !has_one_reader(graph, node.operands[0], users)) return std::nullopt;
    update.chain.push_back(value);
    if (!scatters) update.windows.emplace_back(StateUpdate::Window{node.operands[1], {node.operands.begin() + 2, node.operands.end()}});
    else if (auto windows = scattered(graph, node)) update.windows.emplace_back(std::move(*windows));
    else return std::nullopt;
    value = node.operands[0];
  }
  std::ranges::reverse(update.windows);
  return update.windows.empty() ? std::nullopt : std::optional(std::move(update));
}

}  // namespace

std::vector<ValueId> StateUpdate::operands() const {
  std::vector<ValueId> all;
  for (const auto& each : windows) {
    if (const auto* many = std::get_if<Windows>(&each)) {
      all.insert(all.end(), {many->value, many->starts});
      continue;
    }
    const auto& one = std::get<Window>(each);
    all.push_back(one.value);
    all.insert(all.end(), one.starts.begin(), one.starts.end());
  }
  return all;
}

std::vector<StateUpdate> state_updates(const Graph& graph, const std::map<ValueId, std::vector<std::int32_t>>& users) {
  std::vector<StateUpdate> updates;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind != InputKind::state || bytes_for(input.type.dtype, 8) % 8 != 0) continue;
    std::vector<ValueId> next;  // an output may have several names
    for (const auto& [name, output] : graph.outputs())
      if (name == input.name) next.push_back(output.id());
    if (next.size() != 1 || !input.type.is_static()) continue;
    const auto named = std::ranges::count_if(graph.outputs(), [&](const auto& output) { return output.second.id() == next[0]; });
    if (auto update = update_of(graph, value.id(), next[0], users); update && named == 1) updates.push_back(std::move(*update));
  }
  return updates;
}

namespace {

void copy_window(const Window& window, std::span<const std::int64_t> shape, std::int64_t width, std::byte* to) {
  const std::size_t rank = shape.size();
  if (std::ranges::count(window.shape, 0) > 0) return;
  if (rank == 0) return void(std::memcpy(to, window.bytes, static_cast<std::size_t>(width)));
  std::int64_t rows = 1, place = 0;  // rows of the last axis; place: of the window's first element
  for (std::size_t axis = 0; axis < rank; ++axis) {
    place = place * shape[axis] + std::clamp<std::int64_t>(window.starts[axis], 0, shape[axis] - window.shape[axis]);
    if (axis + 1 < rank) rows *= window.shape[axis];
  }
  std::vector<std::int64_t> at(rank, 0);
  const std::int64_t row_bytes = window.shape.back() * width;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) offset = offset * shape[axis] + at[axis];
    std::memcpy(to + (place + offset) * width, window.bytes + row * row_bytes, static_cast<std::size_t>(row_bytes));
    for (std::size_t axis = rank - 1; axis-- > 0;) {
      if (++at[axis] < window.shape[axis]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace

void copy_windows(std::span<const Window> windows, std::span<const std::int64_t> shape, std::int64_t width, std::byte* to,
                  ThreadPool& pool) {
  if (windows.empty()) return;
  const std::vector<std::int64_t>& extents = windows.front().shape;
  const auto axis = static_cast<std::size_t>(std::ranges::find_if(extents, [](std::int64_t n) { return n > 1; }) - extents.begin());
  if (pool.nodes() == 1 || axis == extents.size()) {
    for (const Window& window : windows) copy_window(window, shape, width, to);
    return;
  }
  std::int64_t index_bytes = width;
  for (std::size_t inner = axis + 1; inner < shape.size(); ++inner) index_bytes *= extents[inner];
  const std::int64_t count = extents[axis], last = shape[axis] - count;
  pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (Window part : windows) {
      part.bytes += begin * index_bytes;
      part.shape[axis] = end - begin;
      part.starts[axis] = std::clamp<std::int64_t>(part.starts[axis], 0, last) + begin;
      copy_window(part, shape, width, to);
    }
  });
}

}  // namespace rlx::cpu
