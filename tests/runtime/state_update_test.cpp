// States whose next value is dynamic_update on them: changed where they lie, unless somebody else holds their bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "message.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {
namespace {

using test::error_of;

/// A cache (2, 8, 3) of two sequences to which each run adds rows at `at`, and the sum of what it holds then.
Graph cache_graph() {
  Graph graph("cache");
  const Value rows = graph.input("rows", {2, Dim::symbol("S", 4), 3}, f32), at = graph.input("at", {2}, i32);
  const Value zero = scalar(rows, 0, i32);
  Value cache = graph.state("cache", {2, 8, 3}, f32);
  for (std::int64_t i = 0; i < 2; ++i) {
    const Value row = scalar(rows, static_cast<double>(i), i32), place = reshape(slice_axis(at, 0, i, i + 1), {});
    cache = dynamic_update(cache, slice_axis(rows, 0, i, i + 1) * 2, {row, place, zero});
  }
  graph.output("cache", cache);
  graph.output("sum", sum(cache, {0, 1, 2}));
  return graph;
}

Outputs add(const Executable& executable, std::vector<std::int32_t> at, float value, std::int64_t count) {
  const std::vector<float> rows(static_cast<std::size_t>(2 * count * 3), value);
  return executable.run({{"rows", Array::of<float>({2, count, 3}, rows)}, {"at", at}});
}

TEST(StateUpdate, IsALaunchThatWritesTheWindowsOnly) {
  const Executable executable = Session().compile(cache_graph());
  EXPECT_NE(executable.dump(Stage::lir).find("state_update"), std::string::npos);
}

TEST(StateUpdate, KeepsWhatOtherRunsWroteAndChangesItsOwnWindow) {
  const Executable executable = Session().compile(cache_graph());
  EXPECT_EQ(add(executable, {0, 1}, 1, 2).at("sum").get_double(0), 24);
  const Outputs second = add(executable, {2, 7}, 3, 1);
  EXPECT_EQ(second.at("sum").get_double(0), 24 + 36);
  const Array& cache = second.at("cache");
  for (std::int64_t slot = 0; slot < 8; ++slot) {
    EXPECT_EQ(cache.get_double(slot * 3), slot < 2 ? 2 : slot == 2 ? 6 : 0) << slot;
    EXPECT_EQ(cache.get_double(24 + slot * 3), slot == 1 || slot == 2 ? 2 : slot == 7 ? 6 : 0) << slot;
  }
}

TEST(StateUpdate, ClampsStartsAsTheOpDoes) {
  const Executable executable = Session().compile(cache_graph());
  const Outputs outputs = add(executable, {-5, 100}, 1, 2);
  EXPECT_EQ(outputs.at("cache").get_double(0), 2);
  EXPECT_EQ(outputs.at("cache").get_double(24 + 7 * 3), 2);
  EXPECT_EQ(outputs.at("sum").get_double(0), 24);
}

TEST(StateUpdate, UsesTheSameMemoryInEachRunWhileNobodyElseHoldsIt) {
  const Executable executable = Session().compile(cache_graph());
  const std::byte* const first = add(executable, {0, 0}, 1, 1).at("cache").bytes().data();
  EXPECT_EQ(add(executable, {1, 1}, 1, 1).at("cache").bytes().data(), first);
}

TEST(StateUpdate, LeavesArraysAloneThatTheCallerHolds) {
  Executable executable = Session().compile(cache_graph());
  const Outputs held = add(executable, {0, 0}, 1, 1);
  add(executable, {0, 0}, 5, 4);
  EXPECT_EQ(held.at("cache").get_double(0), 2);
  std::vector<float> given(48);
  std::iota(given.begin(), given.end(), 0.0F);
  const Array mine = Array::of<float>({2, 8, 3}, given);
  executable.set_state("cache", mine);
  EXPECT_EQ(add(executable, {0, 0}, 5, 4).at("cache").get_double(0), 10);
  EXPECT_EQ(mine, Array::of<float>({2, 8, 3}, given));
  const Array seen = executable.state("cache");
  add(executable, {0, 0}, 7, 4);
  EXPECT_EQ(seen.get_double(0), 10);
}

TEST(StateUpdate, RowsAreCopiedWhereTheyLie) {
  Executable executable = Session().compile(cache_graph());
  const std::byte* const first = add(executable, {0, 1}, 1, 1).at("cache").bytes().data();
  executable.copy_state_row("cache", 1, 0);
  const Array cache = executable.state("cache");
  EXPECT_EQ(cache.bytes().data(), first);
  for (std::int64_t i = 0; i < 24; ++i) EXPECT_EQ(cache.get_double(i), i / 3 == 1 ? 2 : 0) << i;
  executable.copy_state_row("cache", 1, 1);
  EXPECT_EQ(executable.state("cache"), cache);
  EXPECT_EQ(error_of([&] { executable.copy_state_row("cache", 0, 2); }), "state 'cache': row 2 (allowed: 0..1)");
  EXPECT_EQ(error_of([&] { executable.copy_state_row("cache", -1, 0); }), "state 'cache': row -1 (allowed: 0..1)");
  EXPECT_NE(error_of([&] { executable.copy_state_row("rows", 0, 0); }), "no error");
}

TEST(StateUpdate, ProfilingKeepsTheState) {
  const Executable executable = Session().compile(cache_graph());
  add(executable, {0, 0}, 1, 1);
  const std::vector<float> rows(6, 9);
  const std::vector<std::int32_t> at{0, 0};
  executable.profile({{"rows", Array::of<float>({2, 1, 3}, rows)}, {"at", at}}, 3);
  EXPECT_EQ(executable.state("cache").get_double(0), 2);
}

// A cache (3, 2, 4, 3) of pages whose rows (page, :, row, :) are set where a table says.
TEST(StateUpdate, WindowsThatATablePlacesAreSetWhereTheStateLies) {
  Graph graph("pages");
  const Dim count = Dim::symbol("T", 5);
  const Value rows = graph.input("rows", {count, 2, 3}, f32), places = graph.input("places", {count, 2}, i32);
  const Value old = graph.state("pages", {3, 2, 4, 3}, f32);
  graph.output("pages", scatter(old, places, rows, {{1, 2}, {0, 2}, {0, 2}}));
  const Executable executable = Session().compile(graph);
  EXPECT_NE(executable.dump(Stage::lir).find("state_update"), std::string::npos);
  std::vector<double> expected(72, 0);
  float number = 0;
  const auto add = [&](const std::vector<std::int32_t>& at) {
    std::vector<float> values(at.size() * 3);
    for (std::size_t window = 0; window < at.size() / 2; ++window)
      for (std::size_t head = 0; head < 2; ++head)
        for (std::size_t d = 0; d < 3; ++d) {
          const auto page = static_cast<std::size_t>(std::clamp(at[2 * window], 0, 2));
          const auto row = static_cast<std::size_t>(std::clamp(at[2 * window + 1], 0, 3));
          expected[((page * 2 + head) * 4 + row) * 3 + d] = values[(window * 2 + head) * 3 + d] = ++number;
        }
    const auto windows = static_cast<std::int64_t>(at.size() / 2);
    const Array result = executable.run({{"rows", values}, {"places", Array::of<std::int32_t>({windows, 2}, at)}}).at("pages");
    for (std::int64_t i = 0; i < result.size(); ++i) EXPECT_EQ(result.get_double(i), expected[static_cast<std::size_t>(i)]) << i;
  };
  add({0, 0, 2, 3, 1, 1});
  add({2, 0});
  add({0, 0, 0, 1, 0, 0});  // the last counts
  add({-4, 2, 7, 9});
}

TEST(StateUpdate, IsNotUsedWhereTheOldValueIsReadToo) {
  Graph graph("both");
  const Value x = graph.input("x", {1}, f32), at = graph.input("at", {}, i32), old = graph.state("memory", {4}, f32);
  graph.output("memory", dynamic_update(old, x, {at}));
  graph.output("before", sum(old, {0}));
  const Executable executable = Session().compile(graph);
  const std::vector<float> one{1};
  const std::vector<std::int32_t> place{2};
  const auto run = [&] { return executable.run({{"x", one}, {"at", Array::of<std::int32_t>({}, place)}}).at("before").get_double(0); };
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(run(), 1);
}

}  // namespace
}  // namespace rlx
