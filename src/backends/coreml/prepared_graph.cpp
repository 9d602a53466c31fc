#include "backends/coreml/prepared_graph.h"

#include <algorithm>
#include <array>
#include <map>

#include "backends/coreml/call.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/reference.h"
#include "ir/sources.h"
#include "ops/wide.h"
#include "passes/expand.h"
#include "passes/legalize.h"
#include "passes/narrow_types.h"
#include "passes/run_invariant.h"
#include "transform/substitute.h"

namespace rlx::coreml {

bool has_row(const Graph& graph, const Node& node) { return table().taking(graph, node) && !(node.op->body && has_many_axes(graph, node)); }

namespace {

/// In real numbers, as far as `legalize` has rules: an input or output `x` of complex ones is two, `x_real` and `x_imag`; parameters stay.
Graph in_real_parts(const Graph& graph) {
  Graph result(graph.name());
  Values inputs;
  for (const auto& [input, value] : graph.inputs()) {
    const auto part = [&](const char* end) {
      return make_input(result.data(), {input.name + end, input.kind, {part_type(input.type.dtype), input.type.shape}});
    };
    const bool is_pair = is_complex(input.type.dtype) && input.kind != InputKind::param;
    inputs.push_back(is_pair ? complex(part("_real"), part("_imag")) : make_input(result.data(), input));
  }
  const Values outputs = inline_graph(result.data(), graph, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.outputs()[i].first;
    if (!is_complex(outputs[i].dtype())) {
      result.output(name, outputs[i]);
      continue;
    }
    result.output(name + "_real", real(outputs[i]));
    result.output(name + "_imag", imag(outputs[i]));
  }
  return in_real_numbers(result);
}

/// The graph with what `rule` makes of each node, of which it gets the id; nothing: the node as it is.
template <class Rule>
Graph rebuilt(const Graph& graph, const Rule& rule) {
  Rebuilder out(graph);
  for (const std::int32_t id : out.needed())
    if (const Values results = rule(out, id, graph.node(id)); !results.empty()) out.replace(id, results);
    else out.copy(id);
  return out.finish();
}

/// Rows of blocks that are read and then decoded are decoded and then read: CoreML has them as numbers.
Graph with_decoded_tables(const Graph& graph) {
  return rebuilt(graph, [&](const Rebuilder& out, std::int32_t /*id*/, const Node& node) -> Values {
    const Node* const read = node.op->name == "decode_blocks" ? &graph.node(node.operands[0].node) : nullptr;
    if (!read || read->op->name != "gather") return {};
    const Value table = emit(out.data(), *node.op, node.attrs, std::array{out.value(read->operands[0])})[0];
    Attrs attrs = read->attrs;
    auto& sizes = std::get<Dims>(attrs[5]);
    if (!(sizes.back() == graph.type(read->operands[0]).shape.back()))
      fail("coreml: {} reads parts of blocks", node.results[0].to_string());
    sizes.back() = table.shape().back();
    return emit(out.data(), *read->op, attrs, std::array{table, out.value(read->operands[1])});
  });
}

using Ints = std::vector<std::int64_t>;

/// A reduction of a value of `graph`, axis by axis where it is one of windows: what is left of the other axes has the same windows.
Value reduced_apart(const Rebuilder& out, const Graph& graph, const Node& reduce, ValueId v, const Ints& axes) {
  const auto reduced = [&](Value x, const Ints& along) { return emit(out.data(), *reduce.op, {reduce.attrs[0], along}, std::array{x})[0]; };
  const Node& window = graph.node(v.node);
  if (window.op->name != "window" || axes.size() < 2) return reduced(out.value(v), axes);
  const auto axis = std::get<std::int64_t>(window.attrs[0]);
  if (std::ranges::find(axes, axis) != axes.end() || std::ranges::find(axes, axis + 1) == axes.end()) return reduced(out.value(v), axes);
  Ints others;
  std::int64_t place = axis;
  for (const std::int64_t along : axes) {
    if (along < axis) --place;
    if (along != axis + 1) others.push_back(along > axis ? along - 1 : along);
  }
  Attrs attrs = window.attrs;
  attrs[0] = place;
  const Value left = reduced_apart(out, graph, reduce, window.operands[0], others);
  return reduced(emit(out.data(), *window.op, attrs, std::array{left})[0], {place + 1});
}

/// Windows over several axes have more axes than CoreML has.
Graph with_windows_apart(const Graph& graph) {
  return rebuilt(graph, [&](const Rebuilder& out, std::int32_t /*id*/, const Node& node) -> Values {
    if (node.op->name != "reduce") return {};
    return {reduced_apart(out, graph, node, node.operands[0], std::get<Ints>(node.attrs[1]))};
  });
}

/// With inputs in place of random bits, which the host fills. Those of regions stay.
Graph with_random_inputs(const Graph& graph) {
  int inputs = 0;
  return rebuilt(graph, [&](const Rebuilder& out, std::int32_t /*id*/, const Node& node) -> Values {
    if (node.op->name != "random_bits") return {};
    return {make_input(out.data(), {fmt::format("random_bits_{}", inputs++), InputKind::input, node.results[0]})};
  });
}

/// With what follows from parameters alone computed here, as weights are that become 8-bit integers. Those are widened, and what is spread
/// over axes is, by the device.
Graph with_computed_weights(const Graph& graph, const NamedArrays& weights) {
  const std::vector<bool> invariant = run_invariant_nodes(graph);
  std::map<ValueId, Array> known;
  for (const auto& [input, value] : graph.inputs())
    if (const auto weight = weights.find(input.name); weight != weights.end()) known.emplace(value.id(), weight->second);
  return rebuilt(graph, [&](const Rebuilder& out, std::int32_t id, const Node& node) -> Values {
    std::vector<Array> operands;
    for (const ValueId v : node.operands)
      if (const auto array = known.find(v); array != known.end()) operands.push_back(array->second);
    if (const Array* constant = constant_value(node)) known.emplace(ValueId{id, 0}, *constant);
    else if (invariant[static_cast<std::size_t>(id)] && operands.size() == node.operands.size()) {
      Values results;
      for (const Array& array : evaluate_node(graph, id, {}, operands, {})) {
        known.emplace(ValueId{id, static_cast<std::int32_t>(results.size())}, array);
        results.push_back(make_constant(out.data(), array));
      }
      const bool widens = node.op->name == "cast" && graph.type(node.operands[0]).dtype == i8;
      if (!widens && node.op->name != "broadcast") return results;
    }
    return {};
  });
}

}  // namespace

Graph in_rows(const Graph& graph) {
  return with_few_axes(with_narrow_places(with_windows_apart(with_decoded_tables(expand(graph, has_row, has_row)))));
}

Graph in_real_numbers(const Graph& graph) {
  return legalize(graph, [](DType type) { return !is_complex(type); }, has_row);
}

Graph prepared(Graph graph, const Bindings& sizes, const NamedArrays& weights, const CoreMlOptions& options) {
  for (const auto& [symbol, size] : sizes) graph = with_symbol(graph, symbol, size);
  const Graph real = in_real_parts(expand(graph, has_row, has_row));
  Graph rows = in_rows(real);
  if (options.precision == Precision::int8) rows = with_computed_weights(rows, weights);
  return options.computes_random_bits ? rows : with_random_inputs(rows);
}

}  // namespace rlx::coreml
