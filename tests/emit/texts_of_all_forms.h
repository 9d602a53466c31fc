#pragma once
#include <functional>
#include <set>

#include "kernel/graph_kernel.h"
#include "kernel/scalar_ops.h"
#include "ops/sample_operands.h"
#include "rlx/ops.h"

// Kernels of every form, as a language prints them: for compilers that need no device.
namespace rlx::test {

/// All scalar ops on every type, the first sample of each op that has a rule for kernels, kernels of several loops, and sums of long rows;
/// those that `print` takes, each once.
inline std::vector<KernelText> texts_of_all_forms(const std::function<std::optional<KernelText>(const Kernel&)>& print) {
  std::vector<Graph> graphs;
  for (const DType type : generated_types) {
    std::vector<double> unused;
    graphs.push_back(scalar_ops_on(type, 100, unused));
    graphs.push_back(scalar_ops_on(type, 100, unused, false));
  }
  for (const auto& [name, op] : op_registry()) {
    if (op->kind == OpKind::scalar || !(op->sources || op->address || op->loop) || op->samples().empty()) continue;
    const Sample sample = op->samples().front();
    std::vector<Type> types;
    for (const auto& operand : sample.operands) types.push_back(operand.type);
    Graph graph;
    const Values results = apply_op(graph, *op, attributes(*op, sample), inputs_for(graph, types));
    if (results.size() != 1 || !can_generate(results[0].dtype())) continue;
    graph.output("y", results[0]);
    graphs.push_back(std::move(graph));
  }
  const auto of_rows = [&](const auto& body) {
    Graph graph;
    const Value x = graph.input("x", {Dim::symbol("rows", 64), 100}, f32);
    graph.output("y", body(x));
    graphs.push_back(std::move(graph));
  };
  of_rows([](const Value& x) {
    const Value e = exp(x - reduce_max(x, {1}, true));
    return e / sum(e, {1}, true);
  });
  of_rows([](const Value& x) { return matmul(x, transpose(x, {1, 0})); });
  for (const DType type : {f32, f64, bf16, f16, i32}) {
    Graph graph;
    graph.output("y", sum(graph.input("x", {50, 4096}, type), {1}));
    graphs.push_back(std::move(graph));
  }
  std::vector<KernelText> texts;
  std::set<std::string> names;
  for (const Graph& graph : graphs) {
    std::optional<KernelText> text = print(kernel_of(graph));
    if (text && names.insert(text->name).second) texts.push_back(std::move(*text));
  }
  return texts;
}

}  // namespace rlx::test
