#pragma once
#include <functional>

#include "message.h"
#include "ops/sample_operands.h"

namespace rlx::test {

using Doubles = std::vector<double>;

inline Array array_of(DType dtype, std::vector<std::int64_t> shape, const Doubles& values) {
  Array array(dtype, std::move(shape));
  if (array.size() != static_cast<std::int64_t>(values.size())) fail("array_of: {} values for {} elements", values.size(), array.size());
  for (std::size_t i = 0; i < values.size(); ++i) array.set_double(static_cast<std::int64_t>(i), values[i]);
  return array;
}
inline Array floats(std::vector<std::int64_t> shape, const Doubles& values) { return array_of(f32, std::move(shape), values); }
inline Array ints(std::vector<std::int64_t> shape, const Doubles& values) { return array_of(i32, std::move(shape), values); }

inline Doubles values_of(const Array& array) {
  Doubles values;
  for (std::int64_t i = 0; i < array.size(); ++i) values.push_back(array.get_double(i));
  return values;
}

/// All results of a function of values on arrays.
inline std::vector<Array> run_all(std::vector<Array> operands, const std::function<Values(const Values&)>& function) {
  Graph graph;
  std::vector<Type> types;
  for (const Array& operand : operands) types.push_back(type_of(operand));
  const Values results = function(inputs_for(graph, types));
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  return evaluate(graph, named(operands));
}

/// The only result, as numbers.
inline Doubles run(std::vector<Array> operands, const std::function<Value(const Values&)>& function) {
  return values_of(run_all(std::move(operands), [&](const Values& x) { return Values{function(x)}; })[0]);
}

/// The jvp of the node that `function` ends in, by operand 0 along `tangent`.
inline Doubles run_jvp_of(const Array& x, const Array& tangent, const std::function<Value(Value)>& function) {
  Graph graph;
  Value in = graph.input("x0", type_of(x).shape, x.dtype()), d = graph.input("d", type_of(x).shape, x.dtype()), y = function(in);
  const Node& node = graph.node(y.id().node);
  const Values operands{in}, results{y}, tangents{d};
  graph.output("dy", node.op->jvp(node.attrs, operands, results, tangents).at(0));
  return values_of(evaluate(graph, {{"x0", x}, {"d", tangent}})[0]);
}

}  // namespace rlx::test
