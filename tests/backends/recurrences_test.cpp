// Derivatives of running products, maxima and minima as sessions compute them, beside the reference: lines that lie side by side or apart.
#include <gtest/gtest.h>

#include "ir/reference.h"
#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace {

/// The gradient of a weighted sum of running products and extremes along an axis, and their tangents.
Values derivatives(Value x, Value weights, std::int64_t axis, bool reverse) {
  const Value y = cumprod(x, axis, false, reverse) + cummax(x, axis, reverse) * cummin(x, axis, !reverse);
  return {grad(sum_all(y * weights), {x})[0], jvp({y}, {x}, {weights})[0]};
}

TEST(Recurrences, SessionsComputeWhatTheReferenceDoes) {
  std::mt19937 random(8);
  const std::vector<std::vector<std::int64_t>> shapes{{130}, {30, 3, 130}};
  const Session session;
  for (const auto& shape : shapes)
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.size()); ++axis)
      for (const bool reverse : {false, true})
        for (const DType dtype : {f32, f64, bf16, f16}) {
          Graph graph;
          const Dims dims(shape.begin(), shape.end());
          const Values results = derivatives(graph.input("x", dims, dtype), graph.input("w", dims, dtype), axis, reverse);
          for (std::size_t i = 0; i < results.size(); ++i) graph.output(fmt::format("y{}", i), results[i]);
          Array x = random_array({dtype, dims}, 0.5, 1.5, random), weights = random_array({dtype, dims}, -1, 1, random);
          for (std::int64_t i = 0; i < x.size(); i += 7) x.set_double(i, i % 3 == 0 ? 0 : 1.25);  // zeros, and ties
          const std::vector<Array> wanted = evaluate(graph, {{"x", x}, {"w", weights}});
          const auto seen = session.compile(graph).run({{"x", x}, {"w", weights}});
          for (std::size_t r = 0; r < wanted.size(); ++r) {
            double largest = 1;
            for (std::int64_t i = 0; i < wanted[r].size(); ++i) largest = std::max(largest, std::abs(wanted[r].get_double(i)));
            // Up to 130 elements are added up; kernels round narrow floats where they store, the reference after each op.
            const double rounding = dtype == f64 ? 1e-15 : dtype == f32 ? 6e-8 : dtype == f16 ? 5e-4 : 4e-3;
            for (std::int64_t i = 0; i < wanted[r].size(); ++i)
              ASSERT_NEAR(seen[r].get_double(i), wanted[r].get_double(i), 20 * rounding * largest)
                  << name(dtype) << " rank " << shape.size() << " axis " << axis << " reverse " << reverse << " result " << r << " element "
                  << i;
          }
        }
}

TEST(Recurrences, TheSameBitsAtAnyNumberOfThreads) {
  Graph graph;
  const Value x = graph.input("x", {300, 700}, f32), w = graph.input("w", {300, 700}, f32);
  graph.output("y", derivatives(x, w, 0, false)[0]);
  std::mt19937 random(9);
  const Array values = random_array({f32, {300, 700}}, 0.9, 1.1, random), weights = random_array({f32, {300, 700}}, -1, 1, random);
  const auto with = [&](int threads) {
    const Session session(Device::cpu(), {.threads = threads});
    return values_of(session.compile(graph).run({{"x", values}, {"w", weights}})[0]);
  };
  EXPECT_EQ(with(1), with(3));
}

}  // namespace
}  // namespace rlx::test
