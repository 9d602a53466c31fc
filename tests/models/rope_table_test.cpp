// Rotary embeddings by a table turn as rope does.
#include "models/layers/rope_table.h"

#include <gtest/gtest.h>

#include "ir/reference.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

TEST(RopeTable, TurnsAsRope) {
  for (const RopeStyle style : {RopeStyle::half, RopeStyle::interleaved})
    for (const std::int64_t dims : {0, 4}) {
      const RopeOptions options{.dims = dims, .style = style, .scaling = RopeScaling::linear, .factor = 2};
      Graph graph;
      const Value x = graph.input("x", {2, 3, 2, 8}, f32), positions = graph.input("positions", {2, 2}, i32);
      graph.output("table", rope_by_table(x, positions, 900, options));
      graph.output("rope", rope(x, positions, options));
      Array values(f32, {2, 3, 2, 8});
      for (std::int64_t i = 0; i < values.size(); ++i) values.set_double(i, static_cast<double>(i % 7) - 3);
      const auto results = evaluate(graph, {{"x", values}, {"positions", Array::of<std::int32_t>({2, 2}, std::vector{0, 1, 511, 899})}});
      EXPECT_EQ(results[0], results[1]) << dims;
    }
}

}  // namespace
}  // namespace rlx::test
