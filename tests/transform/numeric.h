#pragma once
#include <functional>
#include <optional>

#include "ops/sample_operands.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {

/// Central differences with h = 1e-6 on f64 have an error of about eps / h + h^2 = 3e-10; 1e-7 leaves room for third derivatives.
inline constexpr double difference_tolerance = 1e-7;
/// Two ways to one number in f64 differ by roundings.
inline constexpr double rounding_tolerance = 1e-11;

/// Builds a graph whose inputs have the arrays' types, and evaluates it with the reference.
inline std::vector<Array> run(const std::vector<Array>& arrays, const std::function<Values(const Values&)>& build) {
  Graph graph;
  std::vector<Type> types;
  for (const Array& array : arrays) types.push_back(type_of(array));
  const Values results = build(inputs_for(graph, types));
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  return evaluate(graph, named(arrays));
}

inline Array random_f64(std::vector<std::int64_t> shape, unsigned seed, double low = -1, double high = 1) {
  std::mt19937 random(seed);
  return random_array({f64, Dims(shape.begin(), shape.end())}, low, high, random);
}

inline Array numbers(std::vector<std::int64_t> shape, const std::vector<double>& values) {
  return Array::of<double>(std::move(shape), values);
}

/// a + factor * b; elements of b that a has no room for (integers) are not there.
inline Array moved(const Array& a, const Array& b, double factor) {
  Array result(a.dtype(), a.shape());
  for (std::int64_t i = 0; i < a.size(); ++i) result.set_complex(i, a.get_complex(i) + factor * b.get_complex(i));
  return result;
}

inline double inner_product(const Array& a, const Array& b) {
  double total = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) total += a.get_double(i) * b.get_double(i);
  return total;
}

inline double magnitude(const std::vector<Array>& arrays) {
  double largest = 0;
  for (const Array& array : arrays) largest = std::max(largest, largest_magnitude(array));
  return largest;
}

/// A fresh first axis of `size` entries, and one entry of it.
inline Array slice_of(const Array& stacked, std::int64_t i) {
  Array result(stacked.dtype(), {stacked.shape().begin() + 1, stacked.shape().end()});
  for (std::int64_t k = 0; k < result.size(); ++k) {
    const std::int64_t from = i * result.size() + k;
    if (is_integer(stacked.dtype())) result.set_uint(k, stacked.get_uint(from));
    else result.set_complex(k, stacked.get_complex(from));
  }
  return result;
}

}  // namespace rlx::test
