// Graphs on MLX: what a session promises holds there, too.
#include "backends/mlx_device.h"

#include <limits>
#include <numeric>

#include "backends/random_graph.h"
#include "message.h"
#include "own_memory.h"
#include "quant/block_format.h"
#include "rlx/host_call.h"

namespace rlx::test {
namespace mlx_test {

TEST_F(MlxTest, AddsTwoVectors) {
  Graph graph;
  const Value x = graph.input("x", {3}, f32), z = graph.param("z", {3}, f32);
  graph.output("y", x + z);
  Executable program = session().compile(graph);
  const std::vector<float> one{1, 2, 3}, other{10, 20, 30};
  program.set_param("z", other);
  const Outputs seen = program.run({{"x", one}});
  EXPECT_EQ(seen.at("y"), Array::of<float>({3}, std::vector<float>{11, 22, 33}));
}

TEST_F(MlxTest, RandomGraphsAgreeWithTheReference) {
  const Session device = session();
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph;
    RandomGraph(graph, seed, false, "", seed % 3 == 0 ? Dim::symbol("B", 4) : Dim(3)).draw();
    Executable there = device.compile(graph);
    for (const std::int64_t batch : {3, 1, 3}) {
      if (batch == 1 && seed % 3 != 0) continue;
      std::mt19937 random(seed);
      std::map<std::string, Array> all, params;
      std::map<std::string, Feed> fed;
      for (const auto& [input, value] : graph.inputs()) {
        const Type type = bind_sizes(input.type, {{"B", batch}});
        const Array x = random_array(type, is_bool(type.dtype) ? 0 : -4, is_bool(type.dtype) ? 1 : 4, random);
        if (input.kind == InputKind::param) params.emplace(input.name, x);
        else fed.emplace(input.name, x);
        all.emplace(input.name, x);
      }
      there.set_params(params);
      const Outputs seen = there.run(fed);
      const std::vector<Array> expected = evaluate(graph, all);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_LE(difference(seen[i], expected[i]), 1e-4 * (1 + largest_magnitude(expected[i]))) << graph.outputs()[i].first;
    }
  }
}

/// Four rows: each run writes the next, and sums all.
TEST_F(MlxTest, StatesLiveBetweenRuns) {
  Graph graph;
  const Value cache = graph.state("cache", {4, 3}, f32), row = graph.input("row", {1, 3}, f32), at = graph.input("at", {}, i32);
  const Value next = dynamic_update(cache, row, {at, scalar(at, 0, i32)});
  graph.output("cache", next);
  graph.output("sum", sum(next, {0, 1}));
  Executable program = session().compile(graph);
  const std::vector<float> values{1, 2, 3};
  std::vector<float> expected(12, 0);
  for (const std::int32_t place : {0, 2, 7}) {  // 7: clamped to the last row
    const std::vector<std::int32_t> places{place};
    const Outputs seen = program.run({{"row", values}, {"at", Array::of<std::int32_t>({}, places)}});
    std::ranges::copy(values, expected.begin() + 3 * std::min(place, 3));
    EXPECT_EQ(seen.at("cache"), Array::of<float>({4, 3}, expected));
    EXPECT_EQ(program.state("cache"), seen.at("cache"));
    EXPECT_EQ(seen.at("sum").get_double(0), std::accumulate(expected.begin(), expected.end(), 0.0F));
  }
  program.copy_state_row("cache", 0, 1);
  EXPECT_EQ(program.state("cache").get_double(4), 2);
  program.set_state("cache", Array(f32, {4, 3}));
  EXPECT_EQ(program.state("cache"), Array(f32, {4, 3}));
}

/// An array that somebody holds keeps its values; one that nobody holds is changed where it lies.
TEST_F(MlxTest, StatesChangeWhereTheyLie) {
  Graph graph;
  const Value cache = graph.state("cache", {64, 3}, f32), row = graph.input("row", {1, 3}, f32), at = graph.input("at", {}, i32);
  graph.output("cache", dynamic_update(cache, row, {at, scalar(at, 0, i32)}));
  Executable program = session().compile(graph);
  const std::vector<float> values{1, 2, 3};
  const std::vector<std::int32_t> place{5};
  const auto run = [&] { return program.run({{"row", values}, {"at", Array::of<std::int32_t>({}, place)}}); };
  run();
  const std::byte* const before = program.state("cache").bytes().data();
  run();
  EXPECT_EQ(program.state("cache").bytes().data(), before);
  const Array held = program.state("cache");
  const std::vector<float> others{7, 8, 9};
  program.run({{"row", others}, {"at", Array::of<std::int32_t>({}, place)}});
  EXPECT_EQ(held.get_double(15), 1);
  EXPECT_EQ(program.state("cache").get_double(15), 7);
}

TEST_F(MlxTest, ResultsOutliveWhatWasFed) {
  Graph graph;
  const Value x = graph.input("x", {4}, f32);
  graph.output("same", reshape(x, {2, 2}));
  std::vector<float> values{1, 2, 3, 4};
  const Outputs seen = session().compile(graph).run({{"x", values}});
  values.assign(4, 0);
  EXPECT_EQ(seen.at("same").get_double(3), 4);
}

TEST_F(MlxTest, WritesResultsIntoMemoryOfTheCaller) {
  Graph graph;
  const Value x = graph.input("x", {2, 3}, f32);
  graph.output("y", transpose(x, {1, 0}));
  std::vector<float> y(6);
  const std::vector<float> values{3, 1, 2, 6, 5, 4};
  EXPECT_EQ(session().compile(graph).run({{"x", values}}, {{"y", y}}).size(), 0U);
  EXPECT_EQ(y, (std::vector<float>{3, 6, 1, 5, 2, 4}));
}

TEST_F(MlxTest, ParametersAreReadAgainOnceTheyAreBoundAgain) {
  Graph graph;
  const Value w = graph.param("w", {3}, f32), x = graph.input("x", {3}, f32);
  graph.output("y", exp(w) * 0 + w * 2 + x);
  Executable program = session().compile(graph);
  Array weights(f32, {3});
  weights.set_double(0, 5);
  program.set_param("w", weights);
  const std::vector<float> zeros(3);
  EXPECT_EQ(program.run({{"x", zeros}}).at("y").get_double(0), 10);
  weights.set_double(0, 7);
  program.set_param("w", weights);
  EXPECT_EQ(program.run({{"x", zeros}}).at("y").get_double(0), 14);
}

TEST_F(MlxTest, SaysWhatTheHostComputesOrRefusesIt) {
  Graph graph;
  graph.output("l", lu(graph.input("x", {3, 3}, f32) + 1)[0]);
  std::string by;
  for (const NodeReport& node : session().compile(graph).explain())
    if (node.how == "host") by = node.by;
  EXPECT_NE(by.find("a matrix is singular"), std::string::npos) << by;
  const std::string error = error_of([&] { session({.host = false}).compile(graph); });
  EXPECT_NE(error.find("lu, f32[3,3], is not computed on mlx:cpu (MLX ends a run"), std::string::npos) << error;
}

TEST_F(MlxTest, CallsKernelsOfTheProgram) {
  register_kernel("softmax", "mlx", [](std::span<const Array> operands, const std::map<std::string_view, Attr>&) {
    return std::vector<Array>{operands.begin(), operands.end()};
  });
  for (const char* mode : {"lazy", "eager", "compiled"}) {
    Graph graph;
    graph.output("y", softmax(graph.input("x", {3}, f32) * 2, 0) + 1);
    const Outputs seen = session_of_mode(mode).compile(graph).run({{"x", std::vector<float>{1, 2, 3}}});
    EXPECT_EQ(seen.at("y"), Array::of<float>({3}, std::vector<float>{3, 5, 7})) << mode;
  }
  register_kernel("softmax", "mlx", nullptr);
}

TEST_F(MlxTest, AGpuThatIsNotThereIsAnErrorThatSaysSo) {
  if (mlx::backends().size() > 1) GTEST_SKIP() << "there is one";
  const std::string error = error_of([] { Device::named("mlx:gpu"); });
  EXPECT_NE(error.find("no device 'mlx:gpu'"), std::string::npos) << error;
  EXPECT_NE(error.find("mlx:cpu"), std::string::npos) << error;
}

TEST_F(MlxTest, ManyRunsAtATime) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 64), 16}, f32), w = graph.param("w", {16, 16}, f32);
  graph.output("y", matmul(x, w));
  Executable program = session().compile(graph);
  std::vector<float> weights(256, 0), values(64 * 16, 1);
  for (std::size_t i = 0; i < 16; ++i) weights[i * 17] = 2;
  program.set_param("w", weights);
  std::vector<PendingRun> runs;
  for (int i = 0; i < 64; ++i) runs.push_back(program.run_async({{"x", std::span(values).first(16 * static_cast<std::size_t>(i + 1))}}));
  for (int i = 0; i < 64; ++i) {
    const Array& y = runs[static_cast<std::size_t>(i)].results().at("y");
    ASSERT_EQ(y.shape(), (std::vector<std::int64_t>{i + 1, 16}));
    EXPECT_EQ(y.get_double(16 * i + 15), 2);
  }
}

TEST_F(MlxTest, MultipliesBlocksOfEveryType) {
  const Session device = session();
  for (const BlockFormat& format : block_formats()) {
    if (format.values == 1) continue;
    SCOPED_TRACE(format.name);
    std::vector<float> values(5 * 512);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i * i % 97));
    Array blocks(u8, {5, 512 / format.values * format.bytes});
    for (std::int64_t row = 0; row < 5; ++row)
      format.encode(values.data() + row * 512, nullptr, blocks.mutable_bytes().data() + row * blocks.shape()[1], 512);
    for (const bool int8 : {false, true}) {
      Graph graph;
      const Value x = graph.input("x", {3, 512}, f32), w = graph.param("w", {5, blocks.shape()[1]}, u8);
      graph.output("y", block_dot(x, w, std::string(format.name), int8));
      Executable program = device.compile(graph);
      program.set_param("w", blocks);
      const Array given = Array::of<float>({3, 512}, std::span(values).first(3 * 512));
      const Array wanted = evaluate(graph, {{"x", given}, {"w", blocks}})[0];
      for (int run = 0; run < 2; ++run)
        EXPECT_LE(difference(program.run({{"x", given}})[0], wanted), 1e-5 * largest_magnitude(wanted)) << int8;
    }
  }
}

/// Blocks of values that any format holds, five rows for each expert.
Array blocks_of(const BlockFormat& format, std::int64_t experts) {
  std::vector<float> values(static_cast<std::size_t>(experts * 5 * 512));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i * i % 97));
  Array blocks(u8, {experts, 5, 512 / format.values * format.bytes});
  format.encode(values.data(), nullptr, blocks.mutable_bytes().data(), experts * 5 * 512);
  return blocks;
}

TEST_F(MlxTest, DecodesBlocksOfEveryTypeToTheSameBits) {
  const Session device = session({.host = false});
  for (const BlockFormat& format : block_formats()) {
    SCOPED_TRACE(format.name);
    const Array blocks = blocks_of(format, 2);
    Graph graph;
    graph.output("y", decode_blocks(graph.input("w", {2, 5, blocks.shape()[2]}, u8), std::string(format.name)));
    EXPECT_EQ(device.compile(graph).run({{"w", blocks}})[0], evaluate(graph, {{"w", blocks}})[0]);
  }
}

/// Experts that are not there count as the nearest.
TEST_F(MlxTest, MultipliesBlocksOfExperts) {
  const Session device = session({.host = false});
  std::vector<float> values(4 * 512);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::cos(static_cast<float>(i));
  const std::vector<std::int32_t> experts{2, 0, -1, 9};
  for (const BlockFormat& format : block_formats()) {
    SCOPED_TRACE(format.name);
    const Array blocks = blocks_of(format, 3), x = Array::of<float>({4, 512}, values), expert = Array::of<std::int32_t>({4}, experts);
    Graph graph;
    const Value w = graph.param("w", {3, 5, blocks.shape()[2]}, u8);
    graph.output("y",
                 grouped_block_dot(graph.input("x", {4, 512}, f32), w, graph.input("expert", {4}, i32), std::string(format.name), false));
    Executable program = device.compile(graph);
    program.set_param("w", blocks);
    const Array wanted = evaluate(graph, {{"x", x}, {"w", blocks}, {"expert", expert}})[0];
    EXPECT_LE(difference(program.run({{"x", x}, {"expert", expert}})[0], wanted), 1e-5 * largest_magnitude(wanted));
  }
}

/// Of random numbers, in the range that `range_of` has for an input of that name: what MLX gives, with nothing left to the host.
Executable expect_range(const Session& on_mlx, const Graph& graph,
                        const std::function<std::pair<double, double>(std::string_view)>& range_of, const std::string& what) {
  std::mt19937 random(1);
  std::map<std::string, Array> given;
  for (const auto& [input, value] : graph.inputs()) {
    const auto [low, high] = range_of(input.name);
    given.emplace(input.name, random_array(input.type, low, high, random));
  }
  Executable there = on_mlx.compile(graph);
  const Outputs seen = there.run({given.begin(), given.end()});
  const std::vector<Array> wanted = evaluate(graph, given);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_LE(difference(seen[i], wanted[i]), 1e-5 * largest_magnitude(wanted[i])) << what;
  return there;
}

/// Several steps at a time: of any number of them, and where all keys are one.
TEST_F(MlxTest, DeltaNetsAreThoseOfSingleSteps) {
  for (const std::int64_t steps : {1, 8, 21}) {
    for (const bool same : {false, true}) {
      Graph graph;
      const Value q = graph.input("q", {2, steps, 3, 16}, f32), k = graph.input("k", {2, steps, 3, 16}, f32);
      const Value v = graph.input("v", {2, steps, 3, 4}, f32), g = graph.input("g", {2, steps, 3}, f32);
      const Values y = gated_delta_net(q, k, v, g, graph.input("beta", {2, steps, 3}, f32), graph.input("state", {2, 3, 16, 4}, f32));
      graph.output("y", y[0]);
      graph.output("state", y[1]);
      const auto range_of = [&](std::string_view name) {
        if (name == "g") return std::pair(-0.1, 0.0);
        if (name == "beta") return std::pair(0.5, 1.0);
        return std::pair(name == "k" && same ? 0.25 : -0.25, 0.25);
      };
      expect_range(session({.host = false}), graph, range_of, fmt::format("{} steps {}", steps, same));
    }
  }
}

/// Many steps at a time, and what is left of them.
TEST_F(MlxTest, SelectiveScansAreThoseOfSingleSteps) {
  for (const std::int64_t steps : {1, 64, 150}) {
    for (const bool whole : {false, true}) {
      Graph graph;
      const Value x = graph.input("x", {2, steps, 3}, f32), delta = graph.input("delta", {2, steps, 3}, f32);
      const Value a = graph.input("a", {3, 5}, f32), b = graph.input("b", {2, steps, 5}, f32), c = graph.input("c", {2, steps, 5}, f32);
      const Value skip = whole ? graph.input("d", {3}, f32) : Value(), state = whole ? graph.input("state", {2, 3, 5}, f32) : Value();
      const Values y = selective_scan(x, delta, a, b, c, skip, state);
      graph.output("y", y[0]);
      graph.output("state", y[1]);
      const auto range_of = [](std::string_view name) { return std::pair(name == "delta" ? 0.01 : -1.0, name == "a" ? -0.1 : 1.0); };
      const Executable there = expect_range(session({.host = false}), graph, range_of, fmt::format("{} steps {}", steps, whole));
      for (const NodeReport& node : there.explain()) EXPECT_NE(node.how, "control") << "a loop over the steps";
    }
  }
}

/// Scales that MLX reads as NaN.
TEST_F(MlxTest, BlocksThatMlxDoesNotHoldAreDecoded) {
  for (const char* type : {"MXFP4", "NVFP4"}) {
    const BlockFormat& format = *find_block_format(type);
    const Array plain = blocks_of(format, 1);
    for (const int scale : {0, 127, 251, 255}) {
      Array blocks(u8, {5, plain.shape()[2]});
      std::ranges::copy(plain.bytes(), blocks.mutable_bytes().begin());
      blocks.mutable_bytes()[0] = static_cast<std::byte>(scale);
      Graph graph;
      graph.output("y", block_dot(graph.input("x", {1, 512}, f32), graph.param("w", {5, plain.shape()[2]}, u8), type, false));
      Executable program = session().compile(graph);
      program.set_param("w", blocks);
      Array x(f32, {1, 512});
      for (std::int64_t i = 0; i < 512; ++i) x.set_double(i, i < 64 ? 1e-3 : 0);
      const Array wanted = evaluate(graph, {{"x", x}, {"w", blocks}})[0];
      EXPECT_LE(difference(program.run({{"x", x}})[0], wanted), 1e-5 * largest_magnitude(wanted)) << type << " " << scale;
    }
  }
}

/// More queries than keys, and a mask that hides all: MLX gives means, or NaN.
TEST_F(MlxTest, RowsWithNothingToSeeGiveZeros) {
  Graph graph;
  const Value q = graph.input("q", {1, 2, 4, 8}, f32), k = graph.input("k", {1, 2, 2, 8}, f32);
  const Value mask = graph.input("mask", {1, 1, 4, 2}, boolean);
  graph.output("causal", attention(q, k, k, {.causal = true}));
  graph.output("masked", attention(q, k, k, {.mask = mask}));
  Array many(f32, {1, 2, 4, 8}), few(f32, {1, 2, 2, 8});
  for (std::int64_t i = 0; i < few.size(); ++i) few.set_double(i, 1);
  const Outputs seen = session().compile(graph).run({{"q", many}, {"k", few}, {"mask", Array(boolean, {1, 1, 4, 2})}});
  EXPECT_EQ(seen.at("causal").get_double(0), 0);
  EXPECT_EQ(seen.at("causal").get_double(31), 1);
  EXPECT_EQ(seen.at("masked").get_double(31), 0);
}

/// What MLX would read and write outside of memory, or stop the process at.
TEST_F(MlxTest, GuardsWhatMlxLeavesUndefined) {
  Graph graph;
  const Value x = graph.input("x", {4}, i32), at = graph.input("at", {3}, i64), z = graph.input("z", {4}, i32);
  graph.output("taken", take(x, at, 0));
  graph.output("quotient", x / z);
  graph.output("narrow", cast(cast(x, f32) * 1e9, u8));
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  const std::vector<std::int32_t> values{least, 5, -7, 3}, divisors{-1, 0, 2, -1};
  const std::vector<std::int64_t> places{std::int64_t{1} << 40, -3, 1};
  const Outputs seen = session().compile(graph).run({{"x", values}, {"at", places}, {"z", divisors}});
  const std::vector<Array> wanted = evaluate(graph, {{"x", Array::of<std::int32_t>({4}, values)},
                                                     {"at", Array::of<std::int64_t>({3}, places)},
                                                     {"z", Array::of<std::int32_t>({4}, divisors)}});
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(seen[i], wanted[i]) << i;
}

/// 64 MB of them: what the process has in memory grows by the result alone.
TEST_F(MlxTest, ParametersAreReadWhereTheyLie) {
  Graph graph;
  const Value x = graph.input("x", {1, 4096}, f32), w = graph.param("w", {4096, 4096}, f32);
  graph.output("y", matmul(x, w));
  Executable program = session().compile(graph);
  Array weights(f32, {4096, 4096});
  std::ranges::fill(weights.mutable_bytes(), std::byte{0});
  program.set_param("w", weights);
  const std::vector<float> row(4096, 1);
  const std::int64_t before = own_bytes_in_memory();
  if (before < 0) GTEST_SKIP() << "the system does not say what is in memory";
  for (int run = 0; run < 3; ++run) program.run({{"x", row}});
  EXPECT_LT(own_bytes_in_memory() - before, 16 << 20);
}

/// Each run has a thread, and streams of MLX: both end with it.
TEST_F(MlxTest, RunsLeaveNoThreadsBehind) {
  const std::filesystem::path tasks = "/proc/self/task";
  if (!std::filesystem::exists(tasks)) GTEST_SKIP() << "the system does not list threads";
  const auto threads = [&] { return std::distance(std::filesystem::directory_iterator(tasks), std::filesystem::directory_iterator()); };
  Graph graph;
  graph.output("y", exp(graph.input("x", {4}, f32)));
  const Executable program = session().compile(graph);
  const std::vector<float> x(4);
  program.run({{"x", x}});
  const auto before = threads();
  for (int i = 0; i < 40; ++i) program.run_async({{"x", x}}).wait();
  EXPECT_LT(threads(), before + 8);
}

}  // namespace mlx_test
}  // namespace rlx::test
