// A device whose memory the host cannot read computes what the CPU does.
#include "backends/dummy_device.h"

#include <numeric>

#include "backends/random_graph.h"
#include "backends/registry_samples.h"
#include "message.h"

namespace rlx::test {
namespace dummy_device_test {

Session session() {
  SessionOptions options;
  options.cache_folder = "";
  return Session(dummy_device(), options);
}

TEST(DummyDevice, EveryOp) { expect_reference(session()); }

/// The CPU without code written by hand: the same kernels.
Session kernels_alone() {
  SessionOptions options;
  options.cache_folder = "";
  options.claims = false;
  return Session(Device::cpu(), options);
}

/// Whether the device takes the same kernels: in steps of its own it sums in another order.
bool has_same_kernels(const Graph& graph) {
  for (std::size_t id = 0; id < graph.size(); ++id)
    if (graph.node(static_cast<std::int32_t>(id)).op->expansion) return false;
  return true;
}

TEST(DummyDevice, RandomGraphsHaveTheBitsOfTheCpu) {
  const Session device = session(), cpu = kernels_alone();
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph;
    RandomGraph(graph, seed, false, "", seed % 3 == 0 ? Dim::symbol("B", 4) : Dim(3)).draw();
    if (!has_same_kernels(graph)) continue;
    Executable there = device.compile(graph), here = cpu.compile(graph);
    for (const std::int64_t batch : {3, 1, 3}) {  // a size that comes back finds its plan
      if (batch == 1 && seed % 3 != 0) continue;
      std::mt19937 random(seed);
      std::map<std::string, Feed> fed;
      std::map<std::string, Array> params;
      for (const auto& [input, value] : graph.inputs()) {
        const Type type = bind_sizes(input.type, {{"B", batch}});
        const Array x = random_array(type, is_bool(type.dtype) ? 0 : -4, is_bool(type.dtype) ? 1 : 4, random);
        if (input.kind == InputKind::param) params.emplace(input.name, x);
        else fed.emplace(input.name, x);
      }
      there.set_params(params), here.set_params(params);
      const Outputs seen = there.run(fed), expected = here.run(fed);
      for (const auto& [name, value] : expected) EXPECT_EQ(difference(seen.at(name), value), 0) << name;
    }
  }
}

/// A cache of four rows: each run writes the next, and sums all.
TEST(DummyDevice, StatesStayThereAndAreChangedWhereTheyLie) {
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

/// Four rows at once, of which two go to one place: the last counts.
TEST(DummyDevice, ManyRowsOfAStateAreWrittenAtOnce) {
  for (const DType type : {f32, bf16}) {
    Graph graph;
    const Value cache = graph.state("cache", {6, 3}, type), rows = graph.input("rows", {4, 3}, f32), at = graph.input("at", {4, 1}, i32);
    graph.output("cache",
                 scatter(cache, at, cast(rows * 2, type), {.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}}));
    const Executable there = session().compile(graph), here = kernels_alone().compile(graph);
    for (const NodeReport& node : there.explain()) EXPECT_NE(node.how, "host") << node.text;
    std::vector<float> values(12);
    std::iota(values.begin(), values.end(), 1.0F);
    for (const std::vector<std::int32_t>& places : {std::vector{4, 0, 4, 1}, std::vector{9, 2, 5, -3}, std::vector{2, 2, 2, 2}}) {
      const std::map<std::string, Feed> fed{{"rows", values}, {"at", places}};
      EXPECT_EQ(there.run(fed).at("cache"), here.run(fed).at("cache"));
    }
  }
}

TEST(DummyDevice, WritesResultsIntoMemoryOfTheCaller) {
  Graph graph;
  const Value x = graph.input("x", {2, 3}, f32);
  graph.output("y", x + 1);
  const Value c = graph.input("c", {2}, c128);
  graph.output("z", pow(c, c));  // no kernel computes it
  const Executable program = session().compile(graph);
  std::vector<float> y(6);
  Array z(c128, {2}), bases(c128, {2});
  bases.set_double(0, 2), bases.set_double(1, 1);
  const std::vector<float> values{3, 1, 2, 6, 5, 4};
  EXPECT_EQ(program.run({{"x", values}, {"c", bases}}, {{"y", y}, {"z", Target(c128, z.mutable_bytes())}}).size(), 0U);
  EXPECT_EQ(y, (std::vector<float>{4, 2, 3, 7, 6, 5}));
  EXPECT_NEAR(z.get_complex(0).real(), 4, 1e-14);
  EXPECT_EQ(z.get_complex(1), 1.0);
  std::vector<std::byte> halves(12);
  Graph narrow;
  narrow.output("y", cast(narrow.input("x", {6}, f32) * 2, bf16));
  session().compile(narrow).run({{"x", values}}, {{"y", Target(bf16, halves)}});
  EXPECT_EQ(Array(bf16, {6}, halves, nullptr).get_double(3), 12);
  std::vector<float> small(5);
  EXPECT_THROW(program.run({{"x", values}, {"c", bases}}, {{"y", small}}), Error);
}

TEST(DummyDevice, WhatOneNodeOfTheHostGivesToTheNextDoesNotCross) {
  Graph graph;
  const Value x = graph.input("x", {2, 3}, c128), power = pow(x, x + 1);
  graph.output("z", pow(pow(power, x + 2), power));
  const Executable program = session().compile(graph);
  std::vector<std::string> crossings;
  for (const NodeReport& node : program.explain())
    if (node.how == "host") crossings.push_back(node.by.substr(node.by.find(": ") + 2));
  EXPECT_EQ(crossings, (std::vector<std::string>{"192 bytes to the CPU and 0 back", "96 bytes to the CPU and 0 back",
                                                 "0 bytes to the CPU and 96 back"}));
  Array values(c128, {2, 3});
  for (std::int64_t i = 0; i < values.size(); ++i) values.set_complex(i, {0.5 + 0.1 * static_cast<double>(i), 0.25});
  DummyMemory& memory = *dummy_backend().memory();
  const std::int64_t before = memory.downloaded;
  const Outputs seen = program.run({{"x", values}});
  EXPECT_EQ(memory.downloaded - before, 3 * 96);
  EXPECT_EQ(seen.at("z"), evaluate(graph, {{"x", values}})[0]);
}

TEST(DummyDevice, SaysWhatTheHostComputesOrRefusesIt) {
  Graph graph;
  const Value x = graph.input("x", {2, 3}, c128);
  graph.output("z", pow(x, x + 1));
  std::string by;
  for (const NodeReport& node : session().compile(graph).explain())
    if (node.how == "host") by = node.by;
  EXPECT_EQ(by, "kernels have no c128, and `pow` of it does not come apart into numbers that they have: 192 bytes to the CPU and 96 back");
  SessionOptions options;
  options.host = false;
  const std::string error = error_of([&] { Session(dummy_device(), options).compile(graph); });
  EXPECT_NE(error.find("no kernel computes pow, c128[2,3], on dummy, "), std::string::npos) << error;
}

TEST(DummyDevice, ExplainKnowsThatTheClaimsOfTheCpuAreNotItsOwn) {
  Graph graph;
  const Value q = graph.input("q", {1, 2, 4, 8}, f32);
  graph.output("y", attention(q, q, q));
  const auto decomposes = [&](const Session& on) {
    return std::ranges::any_of(on.compile(graph).explain(), [](const NodeReport& node) { return node.how == "decomposed"; });
  };
  EXPECT_TRUE(decomposes(session()));
  EXPECT_FALSE(decomposes(Session()));
}

TEST(DummyDevice, ParametersAreReadAgainOnceTheyAreBoundAgain) {
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

}  // namespace dummy_device_test
}  // namespace rlx::test
