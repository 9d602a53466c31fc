#pragma once
#include <cmath>
#include <random>

#include "ir/array_type.h"
#include "ir/graph_data.h"
#include "ir/reference.h"

namespace rlx::test {

/// Uniform values in low..high; integers and bools are rounded.
inline Array random_array(const Type& type, double low, double high, std::mt19937& random) {
  Array array(type.dtype, static_shape(type));
  std::uniform_real_distribution<double> uniform(low, high);
  for (std::int64_t i = 0; i < array.size(); ++i) {
    const double value = uniform(random);
    if (is_complex(type.dtype)) array.set_complex(i, {value, uniform(random)});
    else array.set_double(i, is_float(type.dtype) ? value : std::nearbyint(value));
  }
  return array;
}

/// Of the square matrices on the last two axes.
inline void add_to_diagonals(Array& array, double number) {
  const std::int64_t n = array.shape().back();
  for (std::int64_t i = 0; i < array.size(); ++i) {
    if (i / n % n != i % n) continue;
    if (is_complex(array.dtype())) array.set_complex(i, array.get_complex(i) + number);
    else array.set_double(i, array.get_double(i) + number);
  }
}

inline std::vector<Array> random_operands(const Sample& sample, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Array> operands;
  for (const Sample::Operand& operand : sample.operands) {
    operands.push_back(random_array(operand.type, operand.low, operand.high, random));
    if (operand.diagonal != 0) add_to_diagonals(operands.back(), operand.diagonal);
  }
  return operands;
}

/// A graph with one input for each array, named x0, x1, ...
inline Values inputs_for(Graph& graph, std::span<const Type> types, const std::string& prefix = "x") {
  Values inputs;
  for (std::size_t i = 0; i < types.size(); ++i) inputs.push_back(graph.input(prefix + std::to_string(i), types[i].shape, types[i].dtype));
  return inputs;
}

/// The results of the op with the operands already given; ops without operands go straight into the graph.
inline Values apply_op(Graph& graph, const OpDef& op, const Attrs& attrs, std::span<const Value> operands) {
  return operands.empty() ? apply(graph.data(), op, attrs) : apply(op, attrs, operands);
}

/// The sample's attributes as a node has them: initial values where it gives none, axes counted from the front.
inline Attrs attributes(const OpDef& op, const Sample& sample) {
  Attrs attrs = sample.attrs;
  if (attrs.empty())
    for (const Field& field : op.fields) attrs.push_back(field.initial);
  Graph graph;
  std::vector<Type> types;
  for (const auto& operand : sample.operands) types.push_back(operand.type);
  return graph.node(apply_op(graph, op, attrs, inputs_for(graph, types)).at(0).id().node).attrs;
}

inline std::map<std::string, Array> named(std::span<const Array> arrays, const std::string& prefix = "x") {
  std::map<std::string, Array> result;
  for (std::size_t i = 0; i < arrays.size(); ++i) result[prefix + std::to_string(i)] = arrays[i];
  return result;
}

inline std::vector<Array> run_op(const OpDef& op, const Attrs& attrs, std::span<const Array> operands) {
  Graph graph;
  std::vector<Type> types;
  for (const Array& operand : operands) types.push_back(type_of(operand));
  const Values results = apply_op(graph, op, attrs, inputs_for(graph, types));
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  return evaluate(graph, named(operands));
}

/// The largest difference of two arrays; infinite when types differ. NaN equals NaN, infinities of one sign are equal.
inline double difference(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return INFINITY;
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const std::complex<double> x = a.get_complex(i), y = b.get_complex(i);
    if (x == y || (std::isnan(x.real()) && std::isnan(y.real()))) continue;
    const double d = std::abs(x - y);
    largest = std::max(largest, std::isnan(d) ? INFINITY : d);
  }
  return largest;
}

inline double largest_magnitude(const Array& a) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double magnitude = std::abs(a.get_complex(i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

/// Spacing of a float type at 1; 0 for types that are exact.
inline double epsilon(DType t) {
  switch (t) {
    case DType::f64:
    case DType::c128: return 0x1p-52;
    case DType::f32:
    case DType::c64: return 0x1p-23;
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::f8e4m3: return 0x1p-3;
    case DType::f8e5m2: return 0x1p-2;
    default: return 0;
  }
}

}  // namespace rlx::test
