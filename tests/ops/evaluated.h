#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "ops/values.h"
#include "rlx/ops.h"

namespace rlx::test {

using Shape = std::vector<std::int64_t>;

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
/// The only result.
template <class Build>
Array computed(const std::vector<Array>& inputs, Build build) {
  return run_all(inputs, [&](const Values& x) { return Values{build(x)}; })[0];
}

/// The tangent that an op's own rule gives; null tangents where `tangents` holds empty arrays.
inline Array tangent(const OpDef& op, const Attrs& attrs, const std::vector<Array>& inputs, const std::vector<Array>& tangents) {
  std::vector<Array> all = inputs;
  for (const Array& t : tangents)
    if (t.rank() > 0) all.push_back(t);
  return computed(all, [&](const Values& v) {
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

}  // namespace rlx::test
