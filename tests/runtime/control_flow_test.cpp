// Control flow in a session: the regions of cond, while and scan run as compiled programs, and give what the reference gives.
#include <gtest/gtest.h>

#include "ir/reference.h"
#include "ops/evaluated.h"
#include "rlx/session.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace control_flow_test {

Session session() {
  SessionOptions options;
  options.cache_folder = "";
  return Session(Device::cpu(), options);
}

constexpr double tolerance = 2e-5;  // f32 sums of 64 terms in two orders, carried through up to 12 steps that do not grow them

/// h = tanh(x_t + h w), for x: f32[S,4,64] and w: f32[64,64]; the states of all steps. The last output counts steps until they are many.
Graph recurrent() {
  Graph graph("recurrent");
  const Dim s = Dim::symbol("S", 32);
  const Value x = graph.input("x", {s, 4, 64}, f32), w = graph.param("w", {64, 64}, f32);
  const auto step = [&](const Values& carry, const Values& slice) {
    const Value next = tanh(slice[0] + matmul(carry[0], w));
    return std::pair{Values{next}, Values{next}};
  };
  const Values states = scan(step, {sum(x, {0}) * 0.01}, {x});
  graph.output("last", states[0]);
  graph.output("all", states[1]);
  const Values doubled = while_loop([&](const Values& v) { return lt(v[0], sum(x * 0 + 1, {0, 1, 2})); },
                                    [](const Values& v) { return Values{v[0] * 2}; }, {scalar(x, 1, f32)});
  graph.output("doubled", doubled[0]);
  graph.output("chosen", cond(
                             gt(doubled[0], scalar(x, 1500, f32)), {states[0]}, [](const Values& v) { return Values{exp(v[0])}; },
                             [](const Values& v) { return Values{v[0] - 1}; })[0]);
  return graph;
}

void expect_like_reference(const Graph& graph, Executable& program, const std::map<std::string, Array>& values) {
  std::map<std::string, Feed> inputs;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind == InputKind::param) program.set_param(input.name, values.at(input.name));
    else inputs.emplace(input.name, values.at(input.name));
  }
  const std::vector<Array> wanted = evaluate(graph, values);
  const Outputs seen = program.run(inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(seen[i].shape(), wanted[i].shape());
    for (std::int64_t k = 0; k < wanted[i].size(); ++k)
      ASSERT_NEAR(seen[i].get_double(k), wanted[i].get_double(k), tolerance * (1 + std::abs(wanted[i].get_double(k)))) << i << " " << k;
  }
}

Array weights(std::int64_t rows, std::int64_t columns, double scale) {
  Array w(f32, {rows, columns});
  for (std::int64_t i = 0; i < w.size(); ++i) w.set_double(i, scale * std::sin(static_cast<double>(i) * 0.7));
  return w;
}

Array steps(std::int64_t count) {
  Array x(f32, {count, 4, 64});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, std::cos(static_cast<double>(i) * 0.3));
  return x;
}

TEST(ControlFlow, RunsAsTheReferenceDoesAtEveryLength) {
  const Graph graph = recurrent();
  const Session shared = session();
  Executable program = shared.compile(graph);
  const auto compiled = shared.counters().kernels_compiled;
  for (std::int64_t length : {1, 7, 12}) expect_like_reference(graph, program, {{"x", steps(length)}, {"w", weights(64, 64, 0.1)}});
  EXPECT_EQ(shared.counters().kernels_compiled, compiled);
}

TEST(ControlFlow, RegionsAreKernelsAndClaims) {
  std::map<std::string, std::string> how;  // by op
  for (const NodeReport& report : session().compile(recurrent()).explain()) {
    EXPECT_NE(report.how, "host") << report.text;
    for (const char* op : {"scan", "while", "cond", "dot", "tanh", "exp"})
      if (report.text.find(std::string(" = ") + op + "(") != std::string::npos) how[op] = report.how;
  }
  for (const char* op : {"scan", "while", "cond"}) EXPECT_EQ(how[op], "control") << op;
  EXPECT_EQ(how["dot"], "claimed");
  EXPECT_EQ(how["tanh"], "generated");
  EXPECT_EQ(how["exp"], "generated");
}

TEST(ControlFlow, RoutinesRunInsideOfRegions) {
  Graph graph("sums");
  const Value x = graph.input("x", {5}, f32);
  graph.output("y", fori_loop(3, [](const Value&, const Values& v) { return Values{cumsum(v[0], 0) * 0.5}; }, {x})[0]);
  Executable program = session().compile(graph);
  for (const NodeReport& report : program.explain()) EXPECT_NE(report.how, "host") << report.text;
  expect_like_reference(graph, program, {{"x", array_of(f32, {5}, {3, 1, 5, 2, 4})}});
}

TEST(ControlFlow, NewWeightsCount) {
  const Graph graph = recurrent();
  Executable program = session().compile(graph);
  Array w = weights(64, 64, 0.1);
  expect_like_reference(graph, program, {{"x", steps(3)}, {"w", w}});
  expect_like_reference(graph, program, {{"x", steps(3)}, {"w", weights(64, 64, -0.2)}});
  // The same memory with other numbers, bound again.
  std::fill(w.mutable_values<float>().begin(), w.mutable_values<float>().end(), 0.01f);
  expect_like_reference(graph, program, {{"x", steps(3)}, {"w", w}});
}

TEST(ControlFlow, NestedLoopsAndSymbolsThatNoOperandShows) {
  Graph graph("nested");
  const Dim s = Dim::symbol("S", 16);
  const Value x = graph.input("x", {s, 3}, f32);
  const Values outer = scan(
      [&](const Values& carry, const Values& slice) {
        const Value inner = fori_loop(
            s, [&](const Value& i, const Values& v) { return Values{v[0] + cast(i, f32) * sum(cast(iota(v[0], {s}, i32), f32), {0})}; },
            {slice[0]})[0];
        return std::pair{Values{carry[0] + inner}, Values{}};
      },
      {sum(x, {0})}, {x});
  graph.output("y", outer[0]);
  Executable program = session().compile(graph);
  for (std::int64_t length : {2, 5}) {
    Array values(f32, {length, 3});
    for (std::int64_t i = 0; i < values.size(); ++i) values.set_double(i, static_cast<double>(i));
    expect_like_reference(graph, program, {{"x", values}});
  }
}

TEST(ControlFlow, CarriesThatChangePlacesAndResultsThatAreOperands) {
  for (bool reverse : {false, true})
    for (std::int64_t length : {0, 1, 2, 5, 8}) {
      Graph graph("exchanged");
      const Value a = graph.input("a", {3}, f32), b = graph.input("b", {3}, f32), x = graph.input("x", {length, 3}, f32);
      const auto step = [&](const Values& carry, const Values& at) {
        const Value product = carry[0] * at[0];
        return std::pair{Values{carry[1], carry[0], product}, Values{product, at[0], product, carry[2], b, carry[0] * 2}};
      };
      const Values results = scan(step, {a, b, a}, {x}, {}, reverse);
      for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
      Executable program = session().compile(graph);
      expect_like_reference(
          graph, program,
          {{"a", array_of(f32, {3}, {1, 2, 3})}, {"b", array_of(f32, {3}, {-1, 0.5, 4})}, {"x", uniform(f32, {length, 3}, -2, 2, 7)}});
    }
}

/// A parameter or a constant that a loop begins with is read by the first step alone.
TEST(ControlFlow, CarriesThatBeginAsWeights) {
  Graph graph("powers");
  const Value a = graph.input("a", {64, 64}, f32), p = graph.param("p", {64, 64}, f32);
  const auto power = [&](const Values& carry, const Values&) { return std::pair{Values{matmul(a, carry[0])}, Values{}}; };
  const auto twice = [&](const Values& carry, const Values&) { return std::pair{scan(power, carry, {}, {2}), Values{}}; };
  graph.output("of_a_parameter", scan(power, {p}, {}, {3})[0]);
  graph.output("of_a_constant", scan(power, {full(a, {64, 64}, 0.5)}, {}, {3})[0]);
  graph.output("in_a_loop", scan(twice, {p}, {}, {2})[0]);
  Executable program = session().compile(graph);
  for (unsigned seed : {1u, 2u})
    expect_like_reference(graph, program, {{"a", uniform(f32, {64, 64}, -0.2, 0.2, seed)}, {"p", uniform(f32, {64, 64}, -1, 1, 9)}});
}

/// What stays is packed once for a loop; another run of the same program brings other numbers at the same place.
TEST(ControlFlow, WeightsThatAreComputedAreReadAnewInEveryRun) {
  Graph graph("computed");
  const Value x = graph.input("x", {6, 16, 64}, f32), v = graph.input("v", {64, 64}, f32), w = v * 0.5;
  const auto step = [&](const Values& carry, const Values& at) {
    const Value next = tanh(at[0] + matmul(carry[0], w));
    return std::pair{Values{next}, Values{next}};
  };
  graph.output("y", scan(step, {slice_axis(squeeze(slice_axis(x, 0, 0, 1), {0}), 0, 0, 16)}, {x})[1]);
  Executable program = session().compile(graph);
  for (unsigned seed : {1u, 2u, 3u})
    expect_like_reference(graph, program, {{"x", uniform(f32, {6, 16, 64}, -1, 1, 9)}, {"v", uniform(f32, {64, 64}, -0.2, 0.2, seed)}});
}

TEST(ControlFlow, GradientsOfAScan) {
  Graph graph("trained");
  const Value x = graph.input("x", {Dim::symbol("S", 32), 4, 64}, f32), w = graph.param("w", {64, 64}, f32);
  const Values states = scan(
      [&](const Values& carry, const Values& slice) {
        const Value next = tanh(slice[0] + matmul(carry[0], w));
        return std::pair{Values{next}, Values{}};
      },
      {sum(x, {0}) * 0.01}, {x});
  const Values gradients = grad(mean(states[0] * states[0], {0, 1}), {x, w});
  graph.output("dx", gradients[0]);
  graph.output("dw", gradients[1]);
  Executable program = session().compile(graph);
  expect_like_reference(graph, program, {{"x", steps(6)}, {"w", weights(64, 64, 0.1)}});
}

}  // namespace control_flow_test
}  // namespace rlx::test
