// States whose next value is computed element by element: a run writes it over the old one, where all of that is read by then.
#include <gtest/gtest.h>

#include <random>

#include "ir/reference.h"
#include "ops/evaluated.h"
#include "own_memory.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"
#include "runtime/fresh_session.h"

namespace rlx::test {
namespace {

/// A step of AdamW for the mean square error of x w: the weights and two moments, as states or as inputs, become outputs of their names.
Graph adamw(bool states, std::int64_t width = 24) {
  Graph graph("adamw");
  const auto kept = [&](const char* name) {
    return states ? graph.state(name, {width, width}, f32) : graph.input(name, {width, width}, f32);
  };
  const Value x = graph.input("x", {8, width}, f32), y = graph.input("y", {8, width}, f32);
  const Value w = kept("w"), m = kept("m"), v = kept("v");
  const Value error = matmul(x, w) - y;
  const Value gradient = grad(mean(error * error, {0, 1}), {w})[0];
  const Value next_m = m * 0.9 + gradient * 0.1, next_v = v * 0.99 + gradient * gradient * 0.01;
  graph.output("w", w - (next_m / (sqrt(next_v) + 1e-8) + w * 0.01) * 0.001);
  graph.output("m", next_m);
  graph.output("v", next_v);
  return graph;
}

Array random_array(std::vector<std::int64_t> shape, unsigned seed) {
  Array array(f32, std::move(shape));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& value : array.mutable_values<float>()) value = uniform(random);
  return array;
}

/// With bytes of its own.
Array copy_of(const Array& array) { return Array::of<float>(array.shape(), array.values<float>()); }

TEST(OverwrittenStates, AnOptimisersStepHasOneMemoryAndTheBitsOfTwo) {
  const Array x = random_array({8, 24}, 1), y = random_array({8, 24}, 2);
  Executable step = session().compile(adamw(true));
  step.set_state("w", random_array({24, 24}, 3));
  const Executable apart = session().compile(adamw(false));
  std::map<std::string, Feed> fed{
      {"x", x}, {"y", y}, {"w", random_array({24, 24}, 3)}, {"m", Array(f32, {24, 24})}, {"v", Array(f32, {24, 24})}};
  std::map<std::string, const std::byte*> places;
  for (int i = 0; i < 5; ++i) {
    const Outputs expected = apart.run(fed), outputs = step.run({{"x", x}, {"y", y}});
    for (const auto& [name, value] : outputs) {
      EXPECT_EQ(value, expected.at(name)) << name << " " << i;
      fed.insert_or_assign(name, expected.at(name));
      EXPECT_TRUE(i == 0 || value.bytes().data() == places[name]) << name << " " << i;  // the first leaves alone what was set
      places[name] = value.bytes().data();
    }
  }
}

TEST(OverwrittenStates, LargeOnesAreInMemoryOnce) {
  const std::int64_t width = 1024, bytes = width * width * 4;
  const Array x = random_array({8, width}, 1), y = random_array({8, width}, 2);
  const Executable step = session().compile(adamw(true, width));
  step.run({{"x", x}, {"y", y}});
  const std::int64_t before = own_bytes_in_memory();
  for (int i = 0; i < 3; ++i) step.run({{"x", x}, {"y", y}});
  EXPECT_LT(own_bytes_in_memory() - before, bytes / 2);
}

TEST(OverwrittenStates, ArraysThatTheCallerHoldsStay) {
  const Array x = random_array({8, 24}, 1), y = random_array({8, 24}, 2), given = random_array({24, 24}, 3);
  Executable step = session().compile(adamw(true));
  step.set_state("w", given);
  const Outputs held = step.run({{"x", x}, {"y", y}});
  EXPECT_EQ(given, random_array({24, 24}, 3));
  const Array weights = copy_of(held.at("w"));
  const Array seen = step.state("m");
  const Array moments = copy_of(seen);
  for (int i = 0; i < 3; ++i) step.run({{"x", x}, {"y", y}});
  EXPECT_EQ(held.at("w"), weights);
  EXPECT_EQ(seen, moments);
  EXPECT_NE(step.state("w"), held.at("w"));
}

TEST(OverwrittenStates, ProfilesAndTracesKeepThem) {
  const Array x = random_array({8, 24}, 1), y = random_array({8, 24}, 2);
  const Executable step = session().compile(adamw(true));
  step.run({{"x", x}, {"y", y}});
  const Array now = step.state("w"), before = copy_of(now);
  step.profile({{"x", x}, {"y", y}}, 2);
  step.trace({{"x", x}, {"y", y}}, 2);
  EXPECT_EQ(step.state("w"), before);
}

/// Draws programs of whole numbers over three states that read them at their own and at other places, early and late.
class Programs {
 public:
  explicit Programs(unsigned seed) : random_(seed) {}

  Graph draw() {
    Graph graph("states");
    std::vector<Value> values{graph.input("x", {side, side}, i32)};
    for (const char* name : names) values.push_back(graph.state(name, {side, side}, i32));
    for (std::size_t i = 0, count = 2 + pick(12); i < count; ++i) values.push_back(next(values));
    for (const char* name : names) graph.output(name, values[1 + pick(values.size() - 1)]);
    for (int i = 0; i < 2; ++i) graph.output("y" + std::to_string(i), values[pick(values.size())]);
    return graph;
  }

  static constexpr std::int64_t side = 6;
  static constexpr std::array<const char*, 3> names{"a", "b", "c"};

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }

  Value next(const std::vector<Value>& values) {
    const Value a = values[pick(values.size())], b = values[pick(values.size())];
    switch (pick(8)) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return rem(a * 3 + b, scalar(a, 1009, i32));
      case 3: return max(a, b);
      case 4: return a + transpose(b, {1, 0});
      case 5: return a - reverse(b, {1});
      case 6: return a + sum(b, {1}, true);
      default: return rem(matmul(a, b), scalar(a, 101, i32));
    }
  }

  std::mt19937 random_;
};

TEST(OverwrittenStates, RandomProgramsAreWhatTheReferenceSays) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Graph graph = Programs(seed).draw();
    const Executable executable = session().compile(graph);
    std::map<std::string, Array> inputs{{"x", counting(i32, {Programs::side, Programs::side})}};
    for (const char* name : Programs::names) inputs.insert_or_assign(name, Array(i32, {Programs::side, Programs::side}));
    for (int run = 0; run < 4; ++run) {
      const std::vector<Array> expected = evaluate(graph, inputs);
      const Outputs outputs = executable.run({{"x", inputs.at("x")}});
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(outputs[i], expected[i]) << "seed " << seed << ", run " << run << ", output " << i << "\n" << executable.dump(Stage::lir);
      for (std::size_t i = 0; i < Programs::names.size(); ++i) inputs.insert_or_assign(Programs::names[i], expected[i]);
    }
  }
}

TEST(OverwrittenStates, AreListedAsMissingUntilTheyAreSetOrReplaced) {
  Graph graph("two");
  const Value x = graph.input("x", {2}, f32), kept = graph.state("kept", {2}, f32), scale = graph.state("scale", {2}, f32);
  graph.output("kept", kept + x * scale * graph.param("p", {2}, f32));
  Executable executable = session().compile(graph);
  EXPECT_EQ(executable.missing_params(), (std::vector<std::string>{"kept", "scale", "p"}));
  EXPECT_EQ(executable.state("kept"), Array(f32, {2}));
  executable.set_params({{"p", counting(f32, {2})}});  // states need none
  EXPECT_EQ(executable.missing_params(), (std::vector<std::string>{"kept", "scale"}));
  executable.run({{"x", counting(f32, {2})}});
  EXPECT_EQ(executable.missing_params(), std::vector<std::string>{"scale"});
  executable.set_state("scale", counting(f32, {2}));
  EXPECT_TRUE(executable.missing_params().empty());
}

}  // namespace
}  // namespace rlx::test
