// The order of a program's steps that a device may change: what shares memory stays in order, at any sizes; the rest is free.
#include "runtime/device_lists.h"

#include <gtest/gtest.h>

#include "backends/cpu/backend.h"
#include "backends/random_graphs.h"
#include "rlx/ops.h"
#include "runtime/executable.h"

namespace rlx::test {
namespace {

struct Steps {
  Program program;
  ProgramSlots slots;
  std::vector<std::vector<int>> order;

  explicit Steps(const Graph& graph, bool fuse = true)
      : program(lower_graph(graph, {.claims = false, .fuse = fuse}, cpu::backend().target({.claims = false})).program),
        slots(assign_slots(program, std::vector<bool>(program.launches.size(), false))) {
    std::vector<std::size_t> states;
    for (const auto& [name, value] : graph.outputs()) {
      const auto is_it = [&](const auto& input) { return input.first.kind == InputKind::state && input.first.name == name; };
      states.push_back(static_cast<std::size_t>(std::ranges::find_if(graph.inputs(), is_it) - graph.inputs().begin()));
    }
    order = step_order(slots, states);
  }
  bool comes_after(int later, int earlier) const {
    const auto& direct = order[static_cast<std::size_t>(later)];
    return std::ranges::any_of(direct, [&](int step) { return step == earlier || (step > earlier && comes_after(step, earlier)); });
  }
  /// Whether two steps touch one memory, and one of them writes to it.
  bool conflict(std::size_t a, std::size_t b, const MemoryPlan& plan, const Bindings& sizes) const {
    const auto place = [&](int slot) -> std::pair<std::int64_t, std::int64_t> {
      const Slot& at = slots.at(slot);
      constexpr std::int64_t apart = std::int64_t{1} << 40;  // each memory beside the arena
      if (at.place != Slot::Place::arena) return {apart * (slot + 1), apart * (slot + 1) + 1};
      const Type& type = program.graph.type(at.value);
      const std::int64_t begin = plan.offsets[at.index];
      return {begin, begin + bytes_for(type.dtype, type.size().evaluate(sizes))};
    };
    for (const Argument& x : slots.arguments[a])
      for (const Argument& y : slots.arguments[b]) {
        if (x.access == Access::read && y.access == Access::read) continue;
        const auto [x_begin, x_end] = place(x.slot);
        const auto [y_begin, y_end] = place(y.slot);
        if (x_begin < y_end && y_begin < x_end) return true;
      }
    return false;
  }
};

TEST(DeviceLists, KeepWhatSharesMemoryInOrder) {
  std::size_t conflicts = 0, free = 0;
  for (unsigned seed = 0; seed < 60; seed += graphs_per_program) {
    const Steps steps(draw(seed, graphs_per_program, false));
    for (const std::int64_t batch : {1, 3, 4}) {
      Bindings sizes;
      for (const std::string& symbol : steps.program.symbols) sizes[symbol] = batch;
      const auto bytes = [&](const Type& type) { return bytes_for(type.dtype, type.size().evaluate(sizes)); };
      const MemoryPlan plan = plan_memory(steps.slots, bytes);
      for (std::size_t b = 0; b < steps.order.size(); ++b)
        for (std::size_t a = 0; a < b; ++a) {
          const bool ordered = steps.comes_after(static_cast<int>(b), static_cast<int>(a));
          conflicts += steps.conflict(a, b, plan, sizes);
          free += !ordered;
          ASSERT_TRUE(ordered || !steps.conflict(a, b, plan, sizes)) << "seed " << seed << ": steps " << a << ", " << b;
        }
    }
  }
  EXPECT_GT(conflicts, 100U);
  EXPECT_GT(free, 100U);
}

TEST(DeviceLists, LeaveProductsOfOneValueFree) {
  Graph graph;
  const Value x = exp(graph.input("x", {1, 64}, f32));
  std::vector<Value> products;
  for (const char* name : {"q", "k", "v"}) products.push_back(matmul(x, graph.input(name, {64, 64}, f32)));
  graph.output("y", exp(concat(products, 0)));
  const Steps steps(graph, false);
  std::vector<int> followers(steps.order.size(), 0);  // by step
  std::size_t most = 0;
  for (const std::vector<int>& after : steps.order) {
    most = std::max(most, after.size());
    for (const int step : after) ++followers[static_cast<std::size_t>(step)];
  }
  EXPECT_EQ(most, 3U);
  EXPECT_EQ(std::ranges::max(followers), 3);
}

TEST(DeviceLists, DoNotWriteAStateBeforeItIsRead) {
  Graph graph;
  const Value s = graph.state("s", {8}, f32), x = graph.input("x", {8}, f32);
  graph.output("y", matmul(reshape(s, {1, 8}), graph.input("w", {8, 8}, f32)));
  graph.output("s", s * 0.5 + x);
  const Steps steps(graph);
  int reads = 0;
  for (std::size_t step = 0; step < steps.order.size(); ++step) {
    bool writes = false;
    for (const Argument& argument : steps.slots.arguments[step]) {
      const Slot& slot = steps.slots.at(argument.slot);
      writes = writes || (slot.place == Slot::Place::output && slot.index == 1);
    }
    for (int before = 0; writes && before < static_cast<int>(step); ++before, ++reads)
      EXPECT_TRUE(steps.comes_after(static_cast<int>(step), before));
  }
  EXPECT_GT(reads, 0);
}

}  // namespace
}  // namespace rlx::test
