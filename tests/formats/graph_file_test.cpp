#include "formats/graph_file.h"

#include <gtest/gtest.h>

#include "formats/temporary_folder.h"
#include "formats/tensors/safetensors.h"
#include "rlx/host_call.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using test::error_of;
using test::TemporaryFolder;

Array ramp(DType dtype, std::vector<std::int64_t> shape) {
  Array array(dtype, std::move(shape));
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_int(i, i % 7);
  return array;
}

/// x w + a large constant + a small one.
SavedGraph example() {
  SavedGraph saved{Graph("example"), {}};
  const Dim batch = Dim::symbol("B", 8);
  Graph& graph = saved.graph;
  const Value x = graph.input("x", {batch, 3}, f32), w = graph.param("layer.weight", {3, 100}, f32);
  const Value cache = graph.state("cache", {batch, 100}, f32);
  Value y = dot(x, w, {1}, {0}) + graph.constant(ramp(f32, {100})) + graph.constant(ramp(f32, {1}));
  y = y + cast(graph.constant(ramp(i4, {100})), f32) + cache;
  graph.output("y", y);
  saved.weights.emplace("layer.weight", ramp(f32, {3, 100}));
  saved.weights.emplace("cache", ramp(f32, {2, 100}));
  return saved;
}

void write_tensors(const std::filesystem::path& path, const Metadata& metadata, const std::string& name = "w") {
  const Array array = ramp(f32, {2});
  const TensorView view{name, f32, {2}, array.bytes()};
  write_safetensors(path, {&view, 1}, metadata);
}

TEST(GraphFile, GivesBackGraphConstantsAndWeights) {
  const TemporaryFolder folder;
  const SavedGraph saved = example();
  save_graph(folder / "g.rlx", saved);
  const SavedGraph back = load_graph(folder / "g.rlx");
  EXPECT_TRUE(structurally_equal(back.graph, saved.graph));
  EXPECT_EQ(back.graph.symbols(), saved.graph.symbols());
  EXPECT_EQ(back.weights, saved.weights);
}

TEST(GraphFile, LargeConstantsAreTensorsThatOtherToolsCanRead) {
  const TemporaryFolder folder;
  save_graph(folder / "g.rlx", example());
  const SafetensorsFile file = SafetensorsFile::open(folder / "g.rlx");
  EXPECT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.array("#0"), ramp(f32, {100}));
  EXPECT_NE(file.metadata().at("graph").find("array \"#0\""), std::string::npos);
}

TEST(GraphFile, RefusesForeignAndNewerFiles) {
  const TemporaryFolder folder;
  const auto error = [&](const Metadata& metadata) {
    write_tensors(folder / "f", metadata);
    return error_of([&] { load_graph(folder / "f"); });
  };
  const std::string name = (folder / "f").string() + ": ";
  EXPECT_EQ(error({}), name + "not a graph file: metadata 'format' is missing");
  EXPECT_EQ(error({{"format", "pt"}}), name + "not a graph file: metadata 'format' is 'pt' (needed: 'rlx-graph')");
  EXPECT_EQ(error({{"format", "rlx-graph"}}), name + "not a graph file: metadata 'version' is missing");
  EXPECT_EQ(error({{"format", "rlx-graph"}, {"version", "2"}}), name + "version 2 is newer than this build reads (allowed: 1..1)");
  EXPECT_EQ(error({{"format", "rlx-graph"}, {"version", "0"}}), name + "metadata 'version' is '0' (allowed: 1..1)");
  EXPECT_EQ(error({{"format", "rlx-graph"}, {"version", "1.0"}}), name + "metadata 'version' is '1.0' (allowed: 1..1)");
  EXPECT_EQ(error({{"format", "rlx-graph"}, {"version", "1"}}), name + "not a graph file: metadata 'graph' is missing");
  EXPECT_EQ(error({{"format", "rlx-graph"}, {"version", "1"}, {"graph", "graph g {\n!"}}),
            (folder / "f").string() + ":graph:2:1: '!' starts nothing that is known");
}

TEST(GraphFile, RefusesArraysThatDoNotFitTheGraph) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& graph, const std::string& tensor) {
    write_tensors(folder / "f", {{"format", "rlx-graph"}, {"version", "1"}, {"graph", graph}}, tensor);
  };
  const auto error = [&](const std::string& graph, const std::string& tensor) {
    write(graph, tensor);
    return error_of([&] { load_graph(folder / "f"); }).substr((folder / "f").string().size());
  };
  const std::string param = "graph g { %0: f32[2] = input {label=\"layer.w\", role=param} }",
                    constant = "graph g { %0 = constant {value=f32[2] array \"#1\"} }";
  write(param, "layer.w");
  EXPECT_EQ(load_graph(folder / "f").weights.count("layer.w"), 1u);
  EXPECT_EQ(error(param, "w"), ": array 'w' is no parameter or state of graph 'g' (near: 'layer.w')");
  EXPECT_EQ(error("graph g { %0: f32[3] = input {label=\"w\", role=param} }", "w"), ": array 'w' is f32[2], the graph declares f32[3]");
  EXPECT_EQ(error("graph g { %0: f32[2] = input {label=\"w\"} }", "w"), ": array 'w' is no parameter or state of graph 'g'");
  write(constant, "#1");
  EXPECT_TRUE(load_graph(folder / "f").weights.empty());
  EXPECT_NE(error(constant, "#2").find(":graph:1:45: "), std::string::npos) << error(constant, "#2");
}

TEST(GraphFile, FunctionsOfTheProcessAreNotKept) {
  const TemporaryFolder folder;
  const auto same = [](std::span<const Array> operands) { return std::vector<Array>(operands.begin(), operands.end()); };
  SavedGraph saved{Graph("example"), {}};
  const Value x = saved.graph.input("x", {3}, f32), which = saved.graph.input("which", {}, boolean);
  saved.graph.output(
      "y", cond(which, {x}, [&](const Values& v) { return host_call(same, v, {x.type()}); }, [](const Values& v) { return v; })[0]);
  EXPECT_NE(error_of([&] { save_graph(folder / "a.graph", saved); }).find("a.graph: the graph calls a function of this process"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.graph"));
}

TEST(GraphFile, SavingChecksTheWeights) {
  const TemporaryFolder folder;
  SavedGraph saved = example();
  saved.weights.emplace("layer.weigth", ramp(f32, {1}));
  EXPECT_NE(error_of([&] { save_graph(folder / "g", saved); }).find("no parameter or state of graph 'example' (near: 'layer.weight')"),
            std::string::npos);
  saved = example();
  saved.weights.at("layer.weight") = ramp(bf16, {3, 100});
  EXPECT_NE(error_of([&] { save_graph(folder / "g", saved); }).find("is bf16[3,100], the graph declares f32[3,100]"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "g"));
}

}  // namespace
}  // namespace rlx
