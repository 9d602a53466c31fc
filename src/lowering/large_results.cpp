#include "lowering/large_results.h"

#include <algorithm>

#include "base/checked.h"
#include "emit/emit.h"

namespace rlx {
namespace {

bool is_large(const Type& type, std::int64_t past_caches_bytes) {
  const Dim size = type.size();
  const auto bits = size.is_static() ? checked_mul(size.value(), std::int64_t{info(type.dtype).bits}) : std::nullopt;
  return bits && *bits / 8 >= past_caches_bytes;
}

/// Whether every row begins on a line when the buffer does. A kernel of one loop has no rows: what threads take of it are whole lines.
bool has_whole_lines(const Kernel& kernel, const KernelBuffer& buffer) {
  const auto first = std::ranges::find_if(
      kernel.stores, [&](const KernelStore& store) { return &kernel.buffers[static_cast<std::size_t>(store.buffer)] == &buffer; });
  const Dim& start = first->index.constant();
  if (!start.is_static() || start.value() * info(buffer.dtype).bits / 8 % cache_line != 0) return false;
  const Dim& row = kernel.extent(kernel.loops.back());
  return kernel.loops.size() == 1 || (row.is_static() && row.value() * info(buffer.dtype).bits / 8 % cache_line == 0);
}

/// Else it is memory of one launch.
bool is_of_graph(const Graph& graph, ValueId v) { return v.result < std::ssize(graph.node(v.node).results); }

bool is_read(const Kernel& kernel, ValueId value) {
  return std::ranges::any_of(kernel.buffers, [&](const KernelBuffer& other) { return !other.written && other.value == value; });
}

}  // namespace

void mark_large_results(Kernel& kernel, const Graph& graph, std::int64_t past_caches_bytes) {
  if (kernel.tile || kernel.loops.empty()) return;  // a tile is small
  for (KernelBuffer& buffer : kernel.buffers)
    buffer.past_caches = buffer.written && is_of_graph(graph, buffer.value) && is_large(graph.type(buffer.value), past_caches_bytes) &&
                         has_whole_lines(kernel, buffer) && !is_read(kernel, buffer.value);
}

}  // namespace rlx
