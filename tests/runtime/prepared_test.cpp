// What is computed from parameters alone is computed once, for all runs, until they change.
#include <gtest/gtest.h>

#include "ops/evaluated.h"
#include "ops/sample_operands.h"
#include "rlx/session.h"
#include "runtime/prepared.h"

namespace rlx::test {
namespace prepared_test {

Session quiet_session(int threads = 2) {
  SessionOptions options;
  options.threads = threads;
  options.cache_folder = "";
  return Session(Device::cpu(), options);
}

/// y = (x * exp(w)) cast(v)^T for x: f32[B,64], w: f32[64], v: bf16[32,64]; e^w is read by a kernel, v as the panels of a product.
Graph scaled_product() {
  Graph graph("scaled product");
  const Value x = graph.input("x", {Dim::symbol("B", 16), 64}, f32), w = graph.param("w", {64}, f32), v = graph.param("v", {32, 64}, bf16);
  const Value scaled = softmax(x * exp(w), 1);
  graph.output("y", matmul(scaled, transpose(cast(v, f32), {1, 0})));
  return graph;
}

struct Case {
  Array x = uniform(f32, {5, 64}, -1, 1, 1), w = uniform(f32, {64}, -1, 1, 2), v = uniform(bf16, {32, 64}, -1, 1, 3);
  Array wanted() const { return evaluate(scaled_product(), {{"x", x}, {"w", w}, {"v", v}})[0]; }
};

// Sums of 64 terms of size 1/64 in f32.
constexpr double tolerance = 1e-6;

std::size_t count_prepared(const Executable& program, const Array& x) {
  std::size_t count = 0;
  for (const LaunchReport& launch : program.profile({{"x", x}}, 1)) {
    count += launch.kind == "prepared" ? 1 : 0;
    EXPECT_EQ(launch.seconds == 0, launch.kind == "prepared") << launch.name;
  }
  return count;
}

TEST(Prepared, LaunchesOfParametersAloneAreNoneOfARun) {
  const Case given;
  Executable program = quiet_session().compile(scaled_product());
  program.set_params({{"w", given.w}, {"v", given.v}});
  constexpr std::size_t once = 2;  // exp(w), and v packed
  EXPECT_EQ(count_prepared(program, given.x), once);
  EXPECT_EQ(program.profile({{"x", given.x}}, 0).size(), once + 2);
  std::size_t prepared = 0;
  for (const NodeReport& node : program.explain()) prepared += node.how == "prepared" ? 1 : 0;
  EXPECT_EQ(prepared, 1u) << "nodes";
}

TEST(Prepared, TheScaleOfABatchNormIs) {
  Graph graph("batch norm");
  const Value x = graph.input("x", {2, 8, 20}, f32), mean = graph.param("mean", {8}, f32), variance = graph.param("variance", {8}, f32);
  graph.output("y", batch_norm(x, mean, variance));
  const Array xs = uniform(f32, {2, 8, 20}, -1, 1, 1), means = uniform(f32, {8}, -1, 1, 2), variances = uniform(f32, {8}, 0.5, 1, 3);
  Executable program = quiet_session().compile(graph);
  program.set_params({{"mean", means}, {"variance", variances}});
  EXPECT_EQ(count_prepared(program, xs), 1u);
  const auto wanted = evaluate(graph, {{"x", xs}, {"mean", means}, {"variance", variances}});
  expect_near(program.run({{"x", xs}}).at("y"), values_of(wanted[0]), tolerance);
}

/// What runs compute from x: f32[n] and parameters, and how many launches are none of them.
struct OneShape {
  std::string name;
  Value (*build)(Graph& graph, Value x);
  std::size_t prepared;
};

const OneShape one_shape[] = {
    {"a sum", [](Graph& g, Value x) { return x + sum(g.param("w", {64, 64}, f32), {0}); }, 1},
    {"exp", [](Graph& g, Value x) { return x * exp(g.param("w", {64}, f32)); }, 1},
    {"two that may be merged",
     [](Graph& g, Value x) {
       const Value w = g.param("w", {64}, f32), e = exp(w), t = tanh(w);
       return reverse(x * e, {0}) + x / (e + 1) * t;
     },
     1},
    {"a result larger than what it reads",
     [](Graph& g, Value x) {
       const Value column = exp(g.param("u", {64, 1}, f32)), row = exp(g.param("v", {64}, f32));
       return reshape(x, {1, 64}) * (column + row);
     },
     2},
    {"a product of two", [](Graph& g, Value x) { return x + matmul(g.param("u", {64, 4}, f32), g.param("v", {4, 64}, f32)); }, 1},
    {"a view and a cast", [](Graph& g, Value x) { return x + cast(reverse(g.param("w", {64}, bf16), {0}), f32); }, 0},
};

/// Kernels of one static shape that read the same memory become one, but not across what is prepared.
TEST(Prepared, EqualShapesDoNotPullItIntoARun) {
  for (const OneShape& c : one_shape) {
    SCOPED_TRACE(c.name);
    Graph graph;
    graph.output("y", c.build(graph, graph.input("x", {64}, f32)));
    std::map<std::string, Array> arrays;
    unsigned seed = 1;
    for (const auto& [input, value] : graph.inputs())
      arrays[input.name] = uniform(input.type.dtype, static_shape(input.type), -1, 1, seed++);
    const Array x = arrays["x"], wanted = evaluate(graph, arrays)[0];
    arrays.erase("x");
    Executable program = quiet_session().compile(graph);
    program.set_params(arrays);
    EXPECT_EQ(count_prepared(program, x), c.prepared);
    for (int run = 0; run < 2; ++run) expect_near(program.run({{"x", x}}).at("y"), values_of(wanted), 1e-5);  // sums of 64 terms below 1
  }
}

/// The contract forbids to change a bound array; here it shows what a run reads.
TEST(Prepared, AreComputedOnceUntilTheParameterIsBoundAgain) {
  Case given;
  Executable program = quiet_session().compile(scaled_product());
  program.set_params({{"w", given.w}, {"v", given.v}});
  const Array before = given.wanted();
  for (int run = 0; run < 2; ++run) expect_near(program.run({{"x", given.x}}).at("y"), values_of(before), tolerance);
  for (float& w : given.w.mutable_values<float>()) w = -w;
  for (std::int64_t i = 0; i < given.v.size(); ++i) given.v.set_double(i, 2 * given.v.get_double(i));
  const Array first = program.run({{"x", given.x}}).at("y");
  expect_near(first, values_of(before), tolerance);
  program.set_param("w", given.w);
  Doubles wanted = values_of(given.wanted());
  for (double& y : wanted) y /= 2;  // v is not bound again
  expect_near(program.run({{"x", given.x}}).at("y"), wanted, tolerance);
  program.set_param("v", given.v);
  expect_near(program.run({{"x", given.x}}).at("y"), values_of(given.wanted()), 2 * tolerance);
}

TEST(Prepared, CostsAreToldWithoutARun) {
  Case given;
  Executable program = quiet_session().compile(scaled_product());
  program.set_params({{"w", given.w}, {"v", given.v}});
  for (const LaunchReport& launch : program.profile({{"x", given.x}}, 0)) EXPECT_EQ(launch.seconds, 0);
  for (float& w : given.w.mutable_values<float>()) w = -w;
  expect_near(program.run({{"x", given.x}}).at("y"), values_of(given.wanted()), tolerance);  // nothing is left of the old ones
}

/// y = x w + b + count: what binds b or count anew leaves the panels of w. As above, the array of w changes to show what a run reads.
TEST(Prepared, PanelsStayUntilTheirParameterIsBoundAgain) {
  Graph graph;
  const Value x = graph.input("x", {8, 64}, f32), w = graph.param("w", {64, 64}, f32);
  graph.output("y", matmul(x, w) + graph.param("b", {64}, f32) + graph.state("count", {}, f32));
  Executable program = quiet_session().compile(graph);
  Array weights = uniform(f32, {64, 64}, 1, 1, 1);
  program.set_params({{"w", weights}, {"b", Array(f32, {64})}});
  const Array ones = uniform(f32, {8, 64}, 1, 1, 1);
  const auto expect_all = [&](double y) { expect_near(program.run({{"x", ones}}).at("y"), Doubles(8 * 64, y), 0); };
  expect_all(64);
  for (float& element : weights.mutable_values<float>()) element = 2;
  program.set_param("b", uniform(f32, {64}, 3, 3, 1));
  expect_all(67);
  program.set_state("count", Array::of<float>({}, std::vector<float>{5}));
  expect_all(72);
  program.set_param("w", weights);
  expect_all(136);
}

/// The same where a loop reads w, in a program with panels of its own: the sum over four steps of x_t w, plus b.
TEST(Prepared, PanelsOfALoopStayUntilTheirParameterIsBoundAgain) {
  Graph graph;
  const Value x = graph.input("x", {4, 8, 64}, f32), w = graph.param("w", {64, 64}, f32);
  const auto step = [&](const Values& carry, const Values& slice) { return std::pair{Values{carry[0] + matmul(slice[0], w)}, Values{}}; };
  graph.output("y", scan(step, {sum(x, {0}) * 0}, {x})[0] + graph.param("b", {64}, f32));
  Executable program = quiet_session().compile(graph);
  Array weights = uniform(f32, {64, 64}, 1, 1, 1);
  program.set_params({{"w", weights}, {"b", Array(f32, {64})}});
  const Array ones = uniform(f32, {4, 8, 64}, 1, 1, 1);
  const auto expect_all = [&](double y) { expect_near(program.run({{"x", ones}}).at("y"), Doubles(8 * 64, y), 0); };
  expect_all(4 * 64);
  for (float& element : weights.mutable_values<float>()) element = 2;
  program.set_param("b", uniform(f32, {64}, 3, 3, 1));
  expect_all(4 * 64 + 3);
  program.set_param("w", weights);
  expect_all(4 * 128 + 3);
}

TEST(Prepared, ProgramsOfASessionShareParametersAndTheirPanels) {
  Graph graph;
  graph.output("y", matmul(graph.input("x", {8, 64}, f32), graph.param("w", {64, 64}, f32)));
  const Session session = quiet_session();
  std::vector<Executable> programs{session.compile(graph), session.compile(graph)};
  Array weights = uniform(f32, {64, 64}, 1, 1, 1);
  const std::weak_ptr<const void> owner = weights.owner();
  for (Executable& program : programs) program.set_param("w", weights);
  EXPECT_EQ(owner.use_count(), 3) << "the bytes are not copied";
  const Array ones = uniform(f32, {8, 64}, 1, 1, 1);
  expect_near(programs[0].run({{"x", ones}}).at("y"), Doubles(8 * 64, 64), 0);
  for (float& element : weights.mutable_values<float>()) element = 2;  // after they were packed
  expect_near(programs[1].run({{"x", ones}}).at("y"), Doubles(8 * 64, 64), 0);
}

/// y = x w with a weight that is rounded before it is packed, for batches of two sizes and inputs in two orders: what a prompt and the
/// tokens after it are to a language model.
TEST(Prepared, ProgramsShareThePanelsOfWhatTheyComputeFromTheSameParameters) {
  const auto layer = [](std::int64_t rows, bool weight_first) {
    Graph graph;
    Value w;
    if (weight_first) w = graph.param("w", {64, 96}, f32);
    const Value x = graph.input("x", {rows, 64}, f32);
    if (!weight_first) w = graph.param("w", {64, 96}, f32);
    graph.output("y", matmul(x, w));
    return graph;
  };
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    SessionOptions options;
    options.threads = 2;
    options.cache_folder = "";
    options.precision = precision;
    const Session session(Device::cpu(), options);
    Executable eight = session.compile(layer(8, false)), three = session.compile(layer(3, true));
    Array weights = uniform(f32, {64, 96}, 1, 1, 1);
    eight.set_param("w", weights);
    three.set_param("w", weights);
    const auto result = [](const Executable& program, std::int64_t rows) {
      return program.run({{"x", uniform(f32, {rows, 64}, 1, 1, 1)}}).at("y").get_double(rows * 96 - 1);
    };
    EXPECT_EQ(result(eight, 8), 64);
    for (float& element : weights.mutable_values<float>()) element = 2;  // after they were packed
    EXPECT_EQ(result(three, 3), 64) << "they were packed again";
    three.set_param("w", weights);
    EXPECT_EQ(result(three, 3), 128) << "they were not packed again";
    EXPECT_EQ(result(eight, 8), 64) << "another program's binding does not concern it";
  }
}

/// y = x exp(w): as above, the array of w changes to show what a run reads.
TEST(Prepared, ProgramsShareWhatTheyComputeFromTheSameParameters) {
  const Session session = quiet_session();
  std::vector<Executable> programs;
  for (const std::int64_t rows : {2, 3}) {
    Graph graph;
    graph.output("y", graph.input("x", {rows, 8}, f32) * exp(graph.param("w", {8}, f32)));
    programs.push_back(session.compile(graph));
  }
  Array weights(f32, {8});
  for (Executable& program : programs) program.set_param("w", weights);
  const auto result = [&](std::size_t program) {
    const auto rows = static_cast<std::int64_t>(program) + 2;
    return programs[program].run({{"x", uniform(f32, {rows, 8}, 1, 1, 1)}}).at("y").get_double(0);
  };
  EXPECT_EQ(result(0), 1);
  for (float& element : weights.mutable_values<float>()) element = 1;  // after its exponentials were computed
  EXPECT_EQ(result(1), 1) << "they were computed again";
  programs[1].set_param("w", weights);
  EXPECT_NEAR(result(1), 2.7182818, 1e-6) << "they were not computed again";
  EXPECT_EQ(result(0), 1) << "another program's binding does not concern it";
}

/// One kernel computes both: it does not say how many there are.
TEST(Prepared, ProgramsDoNotShareWhatHasAnotherSize) {
  const Session session = quiet_session();
  const Array weights = uniform(f32, {64}, -1, 1, 1);
  std::map<std::int64_t, Executable> programs;
  for (const std::int64_t size : {32, 64}) {
    Graph graph;
    graph.output("y", graph.input("x", {2, size}, f32) * exp(slice_axis(graph.param("w", {64}, f32), 0, 0, size)));
    programs.emplace(size, session.compile(graph)).first->second.set_param("w", weights);
  }
  for (const auto& [size, program] : programs) {
    const Array y = program.run({{"x", uniform(f32, {2, size}, 1, 1, 1)}}).at("y");
    EXPECT_NEAR(y.get_double(2 * size - 1), std::exp(weights.get_double(size - 1)), 1e-6);
  }
}

TEST(Prepared, ResultsOfAProgramAreCopiesOfThem) {
  Graph graph;
  const Value e = exp(graph.param("w", {8}, f32));
  graph.output("e", e);
  graph.output("view", reshape(e, {2, 4}));
  graph.output("sum", graph.input("x", {8}, f32) + e);
  Executable program = quiet_session().compile(graph);
  program.set_param("w", Array(f32, {8}));
  const Array x = counting(f32, {8});
  Array e_seen = program.run({{"x", x}}).at("e");
  for (float& element : e_seen.mutable_values<float>()) element = 77;
  const Outputs again = program.run({{"x", x}});
  expect_near(again.at("e"), Doubles(8, 1), 0);
  expect_near(again.at("view"), Doubles(8, 1), 0);
  expect_near(again.at("sum"), {1, 2, 3, 4, 5, 6, 7, 8}, 0);
}

TEST(Prepared, SizesThatARunDecidesAreNot) {
  Graph graph;
  const Dim b = Dim::symbol("B", 16);
  const Value x = graph.input("x", {b, 64}, f32), w = graph.param("w", {16, 64}, f32);
  const Value rows = slice_axis(exp(w), 0, 0, b);
  graph.output("scores", matmul(x, transpose(rows, {1, 0})));
  graph.output("total", sum(rows, {0}));
  Executable program = quiet_session().compile(graph);
  const Array values_of_w = uniform(f32, {16, 64}, -1, 1, 2);
  program.set_param("w", values_of_w);
  for (const std::int64_t size : {3, 16, 5}) {
    const Array values_of_x = uniform(f32, {size, 64}, -1, 1, 1);
    const Outputs seen = program.run({{"x", values_of_x}});
    const auto wanted = evaluate(graph, {{"x", values_of_x}, {"w", values_of_w}});
    expect_near(seen[0], values_of(wanted[0]), 1e-5);  // sums of 64 terms up to e
    expect_near(seen[1], values_of(wanted[1]), 1e-5);
  }
}

/// A product whose two sides are parameters, behind another, and a value that a loop reads.
TEST(Prepared, ChainsAndLoopsReadThem) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("S", 8), 4, 64}, f32), u = graph.param("u", {64, 64}, f32),
              v = graph.param("v", {64, 64}, f32), w = matmul(tanh(u), exp(v));
  const auto step = [&](const Values& carry, const Values& slice) { return std::pair{Values{carry[0] + matmul(slice[0], w)}, Values{}}; };
  graph.output("y", scan(step, {sum(x, {0}) * 0}, {x})[0]);
  graph.output("z", matmul(sum(x, {0}), w));
  Executable program = quiet_session().compile(graph);
  std::map<std::string, Array> arrays{{"u", uniform(f32, {64, 64}, -1, 1, 1)}, {"v", uniform(f32, {64, 64}, -1, 1, 2)}};
  program.set_params(arrays);
  const Array values_of_x = uniform(f32, {6, 4, 64}, -1, 1, 3);
  for (unsigned round = 0; round < 3; ++round) {
    if (round == 2) program.set_param("v", arrays["v"] = uniform(f32, {64, 64}, -1, 1, 7));
    std::map<std::string, Array> all = arrays;
    all["x"] = values_of_x;
    const auto wanted = evaluate(graph, all);
    const Outputs seen = program.run({{"x", values_of_x}});
    for (std::size_t i = 0; i < 2; ++i)
      expect_near(seen[i], values_of(wanted[i]), 2e-3);  // sums of 64 * 64 terms up to 3, results up to 300
  }
}

/// Two launches: one gives value 0 from input 0, the next value 1, which runs read, from value 0 and input 1. Runs read value 2 of input 2.
TEST(Prepared, KeepsOnlyWhatRunsRead) {
  const Type type{f32, {4}};
  const PreparedPart part{{{0, type, {0}, false}, {1, type, {0, 1}, true}, {2, type, {2}, true}},
                          {{0, {}, {0}}, {1, {0}, {1}}, {2, {}, {2}}}};
  Prepared prepared(part);
  EXPECT_FALSE(prepared.complete);
  EXPECT_EQ(prepared.missing(part).size(), 3u);
  for (std::shared_ptr<const Array>& array : prepared.arrays) array = std::make_shared<Array>(f32, Shape{4});
  prepared.drop_unread(part);
  EXPECT_FALSE(prepared.arrays[0]) << "it was only on the way to value 1";
  EXPECT_TRUE(prepared.arrays[1] && prepared.arrays[2]);
  EXPECT_TRUE(prepared.missing(part).empty());
  const Prepared without_1(part, prepared, {1}), without_2(part, prepared, {2});
  EXPECT_EQ(without_1.missing(part).size(), 2u) << "value 1, and for it value 0";
  EXPECT_FALSE(without_1.complete || without_1.arrays[1]);
  EXPECT_TRUE(without_1.arrays[2]);
  EXPECT_FALSE(without_2.complete || without_2.arrays[2]);
  EXPECT_TRUE(without_2.arrays[1]);
}

}  // namespace prepared_test
}  // namespace rlx::test
