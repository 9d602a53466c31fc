// The derivative transforms between values of one graph.
#include <algorithm>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "rlx/ops.h"
#include "rlx/transform.h"
#include "transform/control_rules.h"
#include "transform/pull_back.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

std::vector<ValueId> ids_of(const Values& values) {
  std::vector<ValueId> ids;
  for (Value v : values) ids.push_back(v.id());
  return ids;
}

bool encloses(const GraphData* outer, const GraphData* inner) {
  while (inner && inner != outer) inner = inner->parent;
  return inner != nullptr;
}

/// The values as seen in `graph`: captures of it for values of enclosing graphs, null where it does not read them.
Values seen_in(GraphData& graph, const Values& values) {
  Values result;
  for (Value v : values) {
    if (&v.graph() == &graph) {
      result.push_back(v);
    } else {
      auto it = graph.lifted.find({&v.graph(), v.id()});
      result.push_back(it == graph.lifted.end() ? Value() : it->second);
    }
  }
  return result;
}

bool depends_on(Value value, Value input) {
  const std::vector<ValueId> outputs{value.id()};
  const std::vector<std::int32_t> nodes = needed_nodes(value.graph(), outputs);
  if (&value.graph() == &input.graph())
    return value != input && std::any_of(nodes.begin(), nodes.end(), [&](std::int32_t id) {
             const auto& operands = value.graph().node(id).operands;
             return std::find(operands.begin(), operands.end(), input.id()) != operands.end();
           });
  return std::any_of(value.graph().captures.begin(), value.graph().captures.end(),
                     [&](Value v) { return encloses(&input.graph(), &v.graph()) && depends_on(v, input); });
}

/// A region that is being built sees values of enclosing graphs as constants: what they depend on would be lost without a word.
void check_captures(std::string_view op, GraphData& graph, const Values& inputs) {
  for (Value input : inputs)
    for (Value captured : graph.captures)
      if (&input.graph() != &graph && encloses(&input.graph(), &captured.graph()) && depends_on(captured, input))
        fail(
            "rlx.{}: the region '{}' uses a value that the enclosing graph computes from an input of the derivative (pass it as an "
            "operand)",
            op, graph.name);
}

/// The outputs again, with tangents, where the inputs have the given ones.
std::vector<Dual> differentiate_between(const Values& outputs, const Values& inputs, const Values& tangents, PassMode mode) {
  GraphData& graph = outputs[0].graph();
  ForwardPass pass(graph, graph, mode);
  Values stops;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) pass.bind(inputs[i].id(), {inputs[i], tangents[i]}), stops.push_back(inputs[i]);
  pass.run(needed_nodes(graph, ids_of(outputs), ids_of(stops)));
  std::vector<Dual> results;
  for (Value v : outputs) results.push_back(pass.at(v.id()));
  return results;
}

void check_counts(std::string_view op, std::string_view what, std::size_t wanted, std::size_t given) {
  if (wanted != given) fail("rlx.{}: {} {} for {}", op, given, what, wanted);
}

void check_direction(std::string_view op, std::string_view what, std::size_t i, Value direction, const Type& type) {
  if (!direction) return;
  if (!carries_tangent(type)) fail("rlx.{}: value {} is {}: it has no {} (allowed: floats and complex)", op, i, type.to_string(), what);
  if (!(direction.type() == type)) fail("rlx.{}: {} {} is {}, the value {}", op, what, i, direction.type().to_string(), type.to_string());
}

/// The outputs in the innermost of their graphs: what a region takes from an enclosing one depends on nothing there.
Values in_one_graph(std::string_view op, const Values& outputs) {
  if (outputs.empty()) fail("rlx.{}: no outputs", op);
  GraphData* graph = nullptr;
  for (Value v : outputs) {
    if (!v) fail("rlx.{}: an output is null", op);
    if (!graph || encloses(graph, &v.graph())) graph = &v.graph();
    else if (!encloses(&v.graph(), graph))
      fail("rlx.{}: outputs belong to different graphs '{}' and '{}'", op, graph->name, v.graph().name);
  }
  Values result;
  for (Value v : outputs) result.push_back(lift(*graph, v));
  return result;
}

struct BackwardPass {
  Values outputs;    // computed again where composites were differentiated by their bodies
  Values gradients;  // by input
};

BackwardPass run_backward(std::string_view op, const Values& given, const Values& inputs,
                          const std::function<Values(const Values&)>& seeds) {
  const Values outputs = in_one_graph(op, given);
  GraphData& graph = outputs[0].graph();
  std::vector<Type> types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) fail("rlx.{}: input {} is null", op, i);
    types.push_back(inputs[i].type());
    if (!carries_tangent(types[i])) fail("rlx.{}: input {} is {} (allowed: floats and complex)", op, i, types[i].to_string());
  }
  check_captures(op, graph, inputs);
  Linearized pass{{}, Graph("linear", graph), {}};
  const Values tangents = tangent_inputs(pass.linear, types);
  finish_linearized(pass, differentiate_between(outputs, seen_in(graph, inputs), tangents, PassMode::reverse));
  graph.note_origins({});
  Values dx = pull_back(graph, pass, seeds(pass.results));
  graph.note_origins({.composite = nullptr, .backward = true});
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const auto same = std::find(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(i), inputs[i]) - inputs.begin();
    dx[i] = static_cast<std::size_t>(same) < i ? dx[static_cast<std::size_t>(same)] : materialized(graph, dx[i], types[i]);
  }
  return {pass.results, dx};
}

Dim elements(const Type& type) { return product(type.shape); }

Dims concatenated(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// One value for each element of `type`, with a 1 there and 0 elsewhere: (elements, shape...).
Value unit_vectors(Value near, const Type& type) {
  const Dim n = elements(type);
  const Value row = iota(near, {n, n}, i32, 0), column = iota(near, {n, n}, i32, 1);
  return reshape(cast(eq(row, column), type.dtype), concatenated({n}, type.shape));
}

}  // namespace

Values jvp(const Operands& given, const Values& inputs, const Values& tangents) {
  check_counts("jvp", "tangents", inputs.size(), tangents.size());
  const Values outputs = in_one_graph("jvp", given);
  GraphData& graph = outputs[0].graph();
  for (std::size_t i = 0; i < inputs.size(); ++i) check_direction("jvp", "tangent", i, tangents[i], inputs[i].type());
  check_captures("jvp", graph, inputs);
  Values results;
  for (const Dual& y : differentiate_between(outputs, seen_in(graph, inputs), tangents, PassMode::forward))
    results.push_back(materialized(graph, y.tangent, y.primal.type()));
  return results;
}

Values vjp(const Operands& outputs, const Values& inputs, const Values& cotangents) {
  check_counts("vjp", "cotangents", outputs.size(), cotangents.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) check_direction("vjp", "cotangent", i, cotangents[i], outputs[i].type());
  return run_backward("vjp", outputs, inputs, [&](const Values&) { return cotangents; }).gradients;
}

std::pair<Value, Values> value_and_grad(Operand output, const Values& inputs) {
  if (!output || output.rank() != 0 || !is_float(output.dtype()))
    fail("rlx.grad: the output is {} (allowed: a float scalar)", output ? output.type().to_string() : "null");
  const BackwardPass result =
      run_backward("grad", {output}, inputs, [](const Values& y) { return Values{filled(y[0].graph(), y[0].type(), 1)}; });
  return {result.outputs[0], result.gradients};
}

Values grad(Operand output, const Values& inputs) { return value_and_grad(output, inputs).second; }

Value hvp(const Function& function, Operand x, Operand v) {
  const Values y = function({x});
  check_counts("hvp", "results", 1, y.size());
  return jvp(grad(y[0], {x}), {x}, {v})[0];
}

Values jacobian(const Function& function, Operand x, JacobianMode mode) {
  const Values y = function({x});
  Values results;
  if (mode == JacobianMode::forward) {
    const Values columns = vmap([&](const Values& direction) { return jvp(y, {x}, direction); }, {unit_vectors(x, x.type())}, {0});
    for (std::size_t i = 0; i < y.size(); ++i) {
      const Value last = move_axis(columns[i], 0, columns[i].rank() - 1);
      results.push_back(reshape(last, concatenated(y[i].shape(), x.shape())));
    }
    return results;
  }
  for (Value each : y) {
    const Values rows = vmap([&](const Values& direction) { return vjp({each}, {x}, direction); }, {unit_vectors(x, each.type())}, {0});
    results.push_back(reshape(rows[0], concatenated(each.shape(), x.shape())));
  }
  return results;
}

}  // namespace rlx
