#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph_data.h"
#include "ir/sources.h"
#include "kernel/compiled.h"
#include "kernel/pull.h"

// One kernel for a whole graph, without the passes that would cut it.
namespace rlx::test {

/// All outputs, which have one shape, in one loop nest; only inputs and constants are read from memory.
inline Kernel kernel_of(const Graph& graph) {
  Kernel kernel;
  for (const auto& [symbol, bound] : graph.symbols()) kernel.symbols.push_back(symbol);
  const Dims& shape = graph.outputs()[0].second.shape();
  std::vector<Index> at;
  for (const Dim& extent : shape) {
    kernel.loops.push_back(kernel.add_variable(extent));
    at.push_back(Index::variable(kernel.loops.back(), extent));
  }
  Puller puller(graph, kernel, [&](ValueId id) { return graph.node(id.node).op->kind == OpKind::source; });
  for (const auto& [name, value] : graph.outputs()) {
    const ExprId result = puller.pull(value.id(), at, graph.node(value.id().node).op->kind != OpKind::source);
    kernel.stores.push_back({puller.buffer_of(value.id(), true), flatten(at, shape), result});
  }
  return kernel;
}

/// Runs the function of kernel_of(graph) on inputs by name; outputs in their order.
inline std::vector<Array> run_kernel(const Graph& graph, const Kernel& kernel, KernelFunction function,
                                     const std::map<std::string, Array>& inputs, const ScheduleOptions& options = {}) {
  Bindings bindings;
  std::vector<Array> results;
  for (const auto& [input, value] : graph.inputs())
    for (std::size_t axis = 0; axis < input.type.shape.size(); ++axis)
      if (const Dim& d = input.type.shape[axis]; !d.is_static()) bindings[d.to_string()] = inputs.at(input.name).shape()[axis];
  for (const auto& [name, value] : graph.outputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& d : value.shape()) shape.push_back(d.evaluate(bindings));
    results.emplace_back(value.dtype(), shape);
  }
  std::vector<void*> buffers;
  for (const KernelBuffer& buffer : kernel.buffers) {
    const void* memory = nullptr;
    if (buffer.written) {
      for (std::size_t i = 0; i < results.size(); ++i)
        if (graph.outputs()[i].second.id() == buffer.value) memory = results[i].mutable_bytes().data();
    } else if (const Array* constant = constant_value(graph.node(buffer.value.node))) {
      memory = constant->bytes().data();
    } else {
      for (const auto& [input, value] : graph.inputs())
        if (value.id() == buffer.value) memory = inputs.at(input.name).bytes().data();
    }
    buffers.push_back(const_cast<void*>(memory));
  }
  std::vector<std::int64_t> sizes;
  for (const std::string& symbol : kernel.symbols) sizes.push_back(bindings.at(symbol));
  std::int64_t grid = 1;
  for (int v : schedule(kernel, options).counted()) grid *= kernel.extent(v).evaluate(bindings);
  function(buffers.data(), sizes.data(), 0, grid);
  return results;
}

}  // namespace rlx::test
