#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/op.h"

namespace rlx {

/// Runs a graph on the host with the reference rule of every op: slow, exact up to accumulation, and the oracle of all kernels.
/// Results come in the order of the outputs; nodes that no output needs are not evaluated. Throws Error when an input is missing,
/// unknown, or has the wrong dtype or shape, and when two shapes give one symbol different values.
std::vector<Array> evaluate(const Graph& graph, const std::map<std::string, Array>& inputs);

/// One node of a graph whose symbols have the values `bindings`; `run_region` runs the regions of its op.
std::vector<Array> evaluate_node(const Graph& graph, std::int32_t id, const Bindings& bindings, std::span<const Array> operands,
                                 const RunRegion& run_region);
/// A node of its own: results from operands.
std::vector<Array> evaluate_node(const OpDef& op, const Attrs& attrs, std::span<const Array> operands);

/// One result computed through the rule that kernels are made from (`sources`, `address` or `loop`) instead of `evaluate`: what tests
/// compare the two by. Throws Error when the op has none of these rules.
Array evaluate_index_map(const OpDef& op, const Attrs& attrs, std::span<const Array> operands);

/// Values of the symbols of a graph's inputs, found from the shapes that are bound to them, in the order of the inputs.
Bindings bind_symbols(const Graph& graph, std::span<const Array> inputs);

/// The type with a number for every size.
Type bind_sizes(const Type& type, const Bindings& bindings);

}  // namespace rlx
