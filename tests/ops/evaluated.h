#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/reference.h"
#include "message.h"
#include "rlx/ops.h"

namespace rlx::test {

using Doubles = std::vector<double>;
using Shape = std::vector<std::int64_t>;

inline Array array(DType dtype, Shape shape, const Doubles& values) {
  Array a(dtype, std::move(shape));
  EXPECT_EQ(a.size(), static_cast<std::int64_t>(values.size()));
  for (std::int64_t i = 0; i < a.size(); ++i) a.set_double(i, values[static_cast<std::size_t>(i)]);
  return a;
}
inline Array counting(DType dtype, Shape shape) {
  Array a(dtype, std::move(shape));
  for (std::int64_t i = 0; i < a.size(); ++i) a.set_double(i, static_cast<double>(i));
  return a;
}
inline Array uniform(DType dtype, Shape shape, double low, double high, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> draw(low, high);
  Array a(dtype, std::move(shape));
  for (std::int64_t i = 0; i < a.size(); ++i) a.set_double(i, is_integer(dtype) ? std::round(draw(generator)) : draw(generator));
  return a;
}
inline Doubles values(const Array& a) {
  Doubles all;
  for (std::int64_t i = 0; i < a.size(); ++i) all.push_back(a.get_double(i));
  return all;
}

/// Inputs of the given arrays; the results of `build` on them.
template <class Build>
std::vector<Array> run_all(const std::vector<Array>& inputs, Build build) {
  Graph graph("test");
  Values operands;
  std::map<std::string, Array> bound;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    operands.push_back(graph.input(name, Dims(inputs[i].shape().begin(), inputs[i].shape().end()), inputs[i].dtype()));
    bound[name] = inputs[i];
  }
  const Values results = build(operands);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  return evaluate(graph, bound);
}
template <class Build>
Array run(const std::vector<Array>& inputs, Build build) {
  return run_all(inputs, [&](const Values& x) { return Values{build(x)}; })[0];
}
/// The tangent that an op's own rule gives; null tangents where `tangents` holds empty arrays.
inline Array tangent(const OpDef& op, const Attrs& attrs, const std::vector<Array>& inputs, const std::vector<Array>& tangents) {
  std::vector<Array> all = inputs;
  for (const Array& t : tangents)
    if (t.rank() > 0) all.push_back(t);
  return run(all, [&](const Values& v) {
    const Values x(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
    Values dx;
    auto next = v.begin() + static_cast<std::ptrdiff_t>(inputs.size());
    for (const Array& t : tangents) dx.push_back(t.rank() > 0 ? *next++ : Value());
    return op.jvp(attrs, x, apply(op, attrs, x), dx)[0];
  });
}

inline void expect_near(const Array& seen, const Doubles& wanted, double tolerance) {
  ASSERT_EQ(seen.size(), static_cast<std::int64_t>(wanted.size()));
  for (std::int64_t i = 0; i < seen.size(); ++i)
    EXPECT_NEAR(seen.get_double(i), wanted[static_cast<std::size_t>(i)], tolerance) << "element " << i;
}
template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& e) {
    return without_place(e.what());
  }
  return "no error";
}

}  // namespace rlx::test
