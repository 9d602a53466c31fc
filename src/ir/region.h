#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

/// The innermost of the graphs that the values live in, or the region inside it that is being traced; null values do not count. Throws
/// Error when they do not lie on one chain of regions.
GraphData& innermost_graph(std::string_view op, std::span<const Value> values);

/// `value` as seen inside `region`: itself, or the capture input that stands for a value of an enclosing graph.
Value lift(GraphData& region, Value value);

using RegionBody = std::function<Values(const Values&)>;

/// Runs `body` on fresh inputs of the given types, in a region of `parent` (null: a graph of its own). The results become its outputs.
Graph trace_region(std::string name, GraphData* parent, const std::vector<Type>& inputs, const RegionBody& body);
/// The same for a region that may use nothing from outside.
Region closed_region(std::string name, const std::vector<Type>& inputs, const RegionBody& body);

struct ClosedRegions {
  std::vector<Region> regions;
  Values captures;
};
/// Ends the tracing of regions of one parent: every one of them gets, behind its own inputs, one input for each value that any of them
/// captured. The results no longer refer to the parent: `captures` are operands of the op that the regions belong to.
ClosedRegions close_regions(const std::vector<Graph>& traced);

std::vector<Type> types_of(std::span<const Value> values);
std::vector<Type> input_types(const Graph& region);
std::vector<Type> output_types(const Graph& region);

}  // namespace rlx
