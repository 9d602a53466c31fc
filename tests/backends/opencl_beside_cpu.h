#pragma once
#include <cmath>

#include "backends/opencl_device.h"
#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {

/// What the session makes of the operands, where nothing may be left to the host. `types`: of the operands, sizes may be symbols there.
inline std::vector<Array> computed(const Device& device, const std::vector<Array>& operands, const std::vector<Type>& types,
                                   const std::function<Values(const Values&)>& function) {
  Graph graph;
  const Values results = function(inputs_for(graph, types));
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  SessionOptions options;
  options.cache_folder = "";
  options.host = false;
  std::map<std::string, Feed> fed;
  for (const auto& [name, array] : named(operands)) fed.emplace(name, array);
  const Outputs outputs = Session(device, options).compile(graph).run(fed);
  std::vector<Array> all;
  for (std::size_t i = 0; i < outputs.size(); ++i) all.push_back(outputs[i]);
  return all;
}

/// Integers are equal; other numbers within `roundings` of the largest; what is not finite is at the same places.
inline void expect_alike(const Array& seen, const Array& wanted, double roundings) {
  ASSERT_EQ(type_of(seen).to_string(), type_of(wanted).to_string());
  double largest = 0, most = 0;
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const std::complex<double> a = seen.get_complex(i), b = wanted.get_complex(i);
    if (a == b || (std::isnan(a.real()) && std::isnan(b.real()))) continue;
    ASSERT_TRUE(std::isfinite(std::abs(a)) && std::isfinite(std::abs(b))) << "element " << i << ": " << a << ", must be " << b;
    most = std::max(most, std::abs(a - b));
  }
  for (std::int64_t i = 0; i < wanted.size(); ++i)
    if (const double size = std::abs(wanted.get_complex(i)); std::isfinite(size)) largest = std::max(largest, size);
  EXPECT_LE(most, roundings * epsilon(wanted.dtype()) * largest);
}

/// The first device does all of it by itself, with the results of the CPU's own routines.
inline void expect_cpu(const Backend& backend, const std::vector<Array>& operands, double roundings,
                       const std::function<Values(const Values&)>& function, std::vector<Type> types = {}) {
  if (types.empty())
    for (const Array& operand : operands) types.push_back(type_of(operand));
  const auto seen = computed(Device(backend), operands, types, function), wanted = computed(Device::cpu(), operands, types, function);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    expect_alike(seen[i], wanted[i], roundings);
  }
}

}  // namespace rlx::test
