#pragma once
#include <map>
#include <span>
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

/// Runs kernel_of(graph) on inputs by name; outputs in their order. `run` gets the bytes of each kernel buffer, the values of the symbols
/// and the number of positions.
template <class Run>
std::vector<Array> run_kernel(const Graph& graph, const Kernel& kernel, const std::map<std::string, Array>& inputs,
                              const ScheduleOptions& options, const Run& run) {
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
  std::vector<std::span<std::byte>> buffers;
  const auto add_read = [&](const Array& array) {
    buffers.emplace_back(const_cast<std::byte*>(array.bytes().data()), array.bytes().size());
  };
  for (const KernelBuffer& buffer : kernel.buffers) {
    if (buffer.written) {
      for (std::size_t i = 0; i < results.size(); ++i)
        if (graph.outputs()[i].second.id() == buffer.value) buffers.push_back(results[i].mutable_bytes());
    } else if (const Array* constant = constant_value(graph.node(buffer.value.node))) {
      add_read(*constant);
    } else {
      for (const auto& [input, value] : graph.inputs())
        if (value.id() == buffer.value) add_read(inputs.at(input.name));
    }
  }
  std::vector<std::int64_t> sizes;
  for (const std::string& symbol : kernel.symbols) sizes.push_back(bindings.at(symbol));
  std::int64_t grid = 1;
  for (const auto [loop, step] : schedule(kernel, options).counted()) grid *= (kernel.extent(loop).evaluate(bindings) + step - 1) / step;
  run(buffers, sizes, grid);
  return results;
}

/// The same by a function of this process.
inline std::vector<Array> run_kernel(const Graph& graph, const Kernel& kernel, KernelFunction function,
                                     const std::map<std::string, Array>& inputs, const ScheduleOptions& options = {}) {
  return run_kernel(graph, kernel, inputs, options,
                    [&](std::span<const std::span<std::byte>> bytes, std::span<const std::int64_t> sizes, std::int64_t grid) {
                      std::vector<void*> buffers;
                      for (const auto& buffer : bytes) buffers.push_back(buffer.data());
                      function(buffers.data(), sizes.data(), 0, grid);
                    });
}

}  // namespace rlx::test
