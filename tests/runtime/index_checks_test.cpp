// Indices of integer inputs that lie outside of their axes, where a session refuses them.
#include <gtest/gtest.h>

#include "ops/evaluated.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "runtime/fresh_session.h"

namespace rlx::test {
namespace {

const Session& checking() {
  static const Session session = [] {
    SessionOptions options;
    options.cache_folder = "";
    options.check_indices = true;
    return Session(Device::cpu(), options);
  }();
  return session;
}

Array ids(std::vector<std::int32_t> values) { return Array::of<std::int32_t>({static_cast<std::int64_t>(values.size())}, values); }

/// Rows of a table that is a state, each counted by what is read of it.
Graph lookup() {
  Graph graph("lookup");
  const Value ids = graph.input("ids", {Dim::symbol("T", 8)}, i32), table = graph.state("table", {5, 2}, f32);
  graph.output("rows", embedding(table, ids));
  graph.output("table", table + 1);
  return graph;
}

TEST(IndexChecks, IdsOutsideOfATableAreAnErrorThatChangesNoState) {
  const Executable executable = checking().compile(lookup());
  EXPECT_EQ(executable.run({{"ids", ids({0, 4})}}).at("rows").shape(), (Shape{2, 2}));
  for (const std::int32_t wrong : {-1, 5, 1 << 30})
    EXPECT_EQ(error_of([&] { executable.run({{"ids", ids({0, wrong, 3})}}); }),
              "graph 'lookup': input 'ids': index " + std::to_string(wrong) + " of gather is out of range (allowed: 0..4)");
  EXPECT_EQ(executable.state("table").get_double(0), 1);
}

TEST(IndexChecks, LetAllSizesOfGroupsPass) {
  Graph graph("groups");
  const Value x = graph.input("x", {256, 4}, f32), w = graph.input("w", {2, 4, 3}, f32), sizes = graph.input("sizes", {2}, i32);
  graph.output("y", ragged_dot(x, w, sizes));
  const Executable executable = checking().compile(graph);
  for (const auto& groups : {std::vector{128, 128}, {0, 256}, {256, 0}, {1, 3}, {0, 0}})
    EXPECT_EQ(error_of([&] {
                executable.run({{"x", counting(f32, {256, 4})}, {"w", counting(f32, {2, 4, 3})}, {"sizes", ids({groups[0], groups[1]})}});
              }),
              "no error");
}

TEST(IndexChecks, AreOffUnlessAskedFor) {
  EXPECT_EQ(session().compile(lookup()).run({{"ids", ids({-1, 7})}}).at("rows").shape(), (Shape{2, 2}));
}

TEST(IndexChecks, KnowIndicesThatAreComputedAndTheirComponents) {
  Graph graph("places");
  const Value x = graph.input("x", {4, 6}, f32), at = graph.input("at", {3, 2}, u8), start = graph.input("start", {}, i64);
  graph.output("points", gather(x, at * 2, {{}, {0, 1}, {0, 1}}, {1, 1}));
  graph.output("slice", dynamic_slice(x, {start, start + 2}, {2, 3}));
  const Executable executable = checking().compile(graph);
  const auto run = [&](std::vector<std::uint8_t> places, std::int64_t first) {
    executable.run({{"x", counting(f32, {4, 6})},
                    {"at", Array::of<std::uint8_t>({3, 2}, places)},
                    {"start", Array::of<std::int64_t>({}, std::vector{first})}});
  };
  EXPECT_EQ(error_of([&] { run({0, 0, 1, 2, 1, 1}, 1); }), "no error");
  EXPECT_EQ(error_of([&] { run({0, 0, 2, 1, 1, 1}, 1); }), "graph 'places': input 'at': index 4 of gather is out of range (allowed: 0..3)");
  EXPECT_EQ(error_of([&] { run({0, 0, 1, 3, 1, 1}, 1); }), "graph 'places': input 'at': index 6 of gather is out of range (allowed: 0..5)");
  EXPECT_EQ(error_of([&] { run({0, 0, 1, 2, 1, 1}, 2); }),
            "graph 'places': input 'start': index 4 of dynamic_slice is out of range (allowed: 0..3)");
}

TEST(IndexChecks, LeaveWhatReadsAFillValueOutside) {
  Graph graph("filled");
  graph.output("y", take(graph.input("x", {4}, f32), graph.input("ids", {Dim::symbol("T", 8)}, i32), 0, IndexMode::fill));
  EXPECT_EQ(error_of([&] { checking().compile(graph).run({{"x", counting(f32, {4})}, {"ids", ids({9})}}); }), "no error");
}

}  // namespace
}  // namespace rlx::test
