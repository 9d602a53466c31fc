#include "ir/region.h"

#include <algorithm>
#include <utility>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/sources.h"

namespace rlx {
namespace {

bool encloses(const GraphData* outer, const GraphData* inner) {
  while (inner && inner != outer) inner = inner->parent;
  return inner != nullptr;
}

// The region that is being traced. A function may mix values of enclosing graphs only and values of its own region; new regions and
// batches inside it must see both, so they start from here and not from their operands' graph.
thread_local GraphData* traced_region = nullptr;

struct TraceScope {
  explicit TraceScope(GraphData& region) : outer(std::exchange(traced_region, &region)) {}
  ~TraceScope() { traced_region = outer; }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  GraphData* outer;
};

std::size_t declared_inputs(const Graph& traced) { return traced.inputs().size() - traced.captures().size(); }

void declare(Graph& region, const std::vector<Type>& types, std::string_view prefix, Values& into) {
  for (std::size_t i = 0; i < types.size(); ++i)
    into.push_back(make_input(region.data(), {std::string(prefix) + std::to_string(i), InputKind::input, types[i]}));
}

void set_outputs(Graph& region, const Values& results) {
  for (std::size_t i = 0; i < results.size(); ++i) region.output("out" + std::to_string(i), results[i]);
}

}  // namespace

GraphData& innermost_graph(std::string_view op, std::span<const Value> values) {
  GraphData* graph = nullptr;
  for (const Value& v : values) {
    if (!v) continue;
    if (!graph || encloses(graph, &v.graph())) graph = &v.graph();
    else if (!encloses(&v.graph(), graph))
      fail("rlx.{}: operands belong to different graphs '{}' and '{}'", op, graph->name, v.graph().name);
  }
  if (!graph) fail("rlx.{}: needs at least one operand", op);
  return traced_region && encloses(graph, traced_region) ? *traced_region : *graph;
}

Graph trace_region(std::string name, GraphData* parent, const std::vector<Type>& inputs, const RegionBody& body) {
  Graph region = parent ? Graph(std::move(name), *parent) : Graph(std::move(name));
  Values arguments;
  declare(region, inputs, "in", arguments);
  const TraceScope scope(region.data());
  set_outputs(region, body(arguments));
  return region;
}

Region closed_region(std::string name, const std::vector<Type>& inputs, const RegionBody& body) {
  return std::make_shared<const Graph>(dead_code_eliminated(trace_region(std::move(name), nullptr, inputs, body)));
}

ClosedRegions close_regions(const std::vector<Graph>& traced) {
  ClosedRegions closed;
  auto position = [&](Value v) { return std::find(closed.captures.begin(), closed.captures.end(), v) - closed.captures.begin(); };
  for (const Graph& region : traced)
    for (const Value& v : region.captures())
      if (position(v) == std::ssize(closed.captures)) closed.captures.push_back(v);
  for (const Graph& region : traced) {
    Graph copy(region.name());
    std::vector<Type> own = input_types(region);
    own.resize(declared_inputs(region));
    Values operands, captured;
    declare(copy, own, "in", operands);
    declare(copy, types_of(closed.captures), "capture", captured);
    for (const Value& v : region.captures()) operands.push_back(captured[static_cast<std::size_t>(position(v))]);
    set_outputs(copy, inline_graph(copy.data(), region, operands));
    closed.regions.push_back(std::make_shared<const Graph>(std::move(copy)));
  }
  return closed;
}

std::vector<Type> types_of(std::span<const Value> values) {
  std::vector<Type> types;
  for (const Value& v : values) types.push_back(v.type());
  return types;
}

std::vector<Type> input_types(const Graph& region) {
  std::vector<Type> types;
  for (const auto& [input, value] : region.inputs()) types.push_back(input.type);
  return types;
}

std::vector<Type> output_types(const Graph& region) {
  std::vector<Type> types;
  for (const auto& [name, value] : region.outputs()) types.push_back(value.type());
  return types;
}

}  // namespace rlx
