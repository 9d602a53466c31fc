// What a primitive says of how others compute it, beside its own evaluation.
#include <gtest/gtest.h>

#include "ops/registry_cases.h"
#include "ops/sample_operands.h"
#include "passes/expand.h"

namespace rlx::test {
namespace {

bool none_computed(const Graph&, const Node&) { return false; }

TEST(Expansions, OfEverySampleAreTheOpsThemselves) {
  int seen = 0;
  for (const Case& c : all_cases()) {
    if (!c.op->expansion) continue;
    ++seen;
    SCOPED_TRACE(c.name());
    const std::vector<Array> operands = random_operands(c.sample, 5);
    Graph graph;
    std::vector<Type> types;
    for (const Array& operand : operands) types.push_back(type_of(operand));
    const Values results = apply_op(graph, *c.op, attributes(*c.op, c.sample), inputs_for(graph, types));
    for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
    const Graph expanded = expand(graph, nothing_claimed, none_computed);
    for (std::size_t id = 0; id < expanded.size(); ++id) EXPECT_NE(expanded.node(static_cast<std::int32_t>(id)).op, c.op);
    const std::vector<Array> wanted = evaluate(graph, named(operands)), found = evaluate(expanded, named(operands));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double allowed = (4 * epsilon(wanted[i].dtype()) + c.sample.tolerance) * largest_magnitude(wanted[i]);
      EXPECT_LE(difference(found[i], wanted[i]), allowed) << "result " << i;
    }
  }
  EXPECT_GT(seen, 50);
}

}  // namespace
}  // namespace rlx::test
