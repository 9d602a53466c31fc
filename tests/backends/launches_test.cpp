// How many kernels graphs become: what fusion and the cut promise.
#include <gtest/gtest.h>

#include "backends/cpu/backend.h"
#include "backends/cpu/execution/work.h"
#include "backends/cpu/product/product.h"
#include "lowering/lowering.h"
#include "lowering/slots.h"
#include "passes/expand.h"
#include "passes/precision.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"

namespace rlx {
namespace {

/// Without those that pack weights, which run once.
std::size_t launches(const Graph& graph) {
  const Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), cpu::target_of());
  return static_cast<std::size_t>(std::ranges::count_if(program.launches, [](const Launch& launch) { return !launch.packed; }));
}

using Layer = std::function<Value(const Value& x, const Value& scale, const Value& shift)>;

const std::vector<std::pair<std::string, Layer>>& row_layers() {
  static const std::vector<std::pair<std::string, Layer>> all{
      {"softmax", [](auto& x, auto&, auto&) { return softmax(x); }},
      {"log_softmax", [](auto& x, auto&, auto&) { return log_softmax(x); }},
      {"logsumexp", [](auto& x, auto&, auto&) { return logsumexp(x, {-1}); }},
      {"layer_norm", [](auto& x, auto& g, auto& b) { return layer_norm(x, g, b); }},
      {"rms_norm", [](auto& x, auto& g, auto&) { return rms_norm(x, g); }},
      {"softmax of gelu", [](auto& x, auto&, auto&) { return softmax(gelu(x)); }},
  };
  return all;
}

Graph rows(const Layer& layer) {
  Graph graph;
  const Dim b = Dim::symbol("B", 64);
  const Value x = graph.input("x", {b, 384}, f32), scale = graph.input("scale", {384}, f32), shift = graph.input("shift", {384}, f32);
  graph.output("y", layer(x, scale, shift));
  return graph;
}

/// The gradient of sum(layer * t).
Graph backward(const Layer& layer, const std::vector<std::string>& names) {
  Graph graph;
  const Dim b = Dim::symbol("B", 64);
  const Value x = graph.input("x", {b, 384}, f32), scale = graph.input("scale", {384}, f32), shift = graph.input("shift", {384}, f32);
  const Value y = layer(x, scale, shift);
  std::vector<std::int64_t> axes;
  for (int i = 0; i < y.type().rank(); ++i) axes.push_back(i);
  const Value loss = sum(y * graph.input("t", y.shape(), f32), axes);
  const std::map<std::string, Value> inputs{{"x", x}, {"scale", scale}, {"shift", shift}};
  Values by;
  for (const std::string& name : names) by.push_back(inputs.at(name));
  const Values gradients = grad(loss, by);
  for (std::size_t i = 0; i < names.size(); ++i) graph.output("grad_" + names[i], gradients[i]);
  return graph;
}

TEST(Launches, AGeneratedProductIsNotRepeatedInsideAnother) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 64), 384}, f32), w1 = graph.input("w1", {384, 1536}, f32),
              w2 = graph.input("w2", {1536, 384}, f32);
  graph.output("y", matmul(erf(matmul(x, w1)), w2));
  const Graph primitives = expand(graph, [](const Graph&, const Node&) { return false; });
  EXPECT_EQ(lower(primitives, cpu::target_of(cpu::cpu_level(), false)).launches.size(), 2u);
}

/// As a device's threads compute blocks of them, in registers that three products would share. Of one row, each weight is used once.
TEST(Launches, ProductsOfManyRowsStayApartOnDevices) {
  for (const auto& [rows, kernels] : {std::pair<Dim, std::size_t>(Dim::symbol("B", 64), 3), {Dim(1), 1}}) {
    Graph graph;
    const Value x = graph.input("x", {rows, 384}, f32);
    for (const char* name : {"q", "k", "v"}) graph.output(name, matmul(x, graph.param(std::string("w") + name, {384, 384}, f32)) + 1);
    TargetDevice target = cpu::target_of(cpu::cpu_level(), false);
    target.caps.schedule = {.lanes = true, .vector = 16};
    target.print = [](const Kernel&, const Caps&) { return KernelText(); };
    const Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), target);
    EXPECT_EQ(program.launches.size(), kernels) << rows.to_string();
  }
}

TEST(Launches, ARowLayerIsOneKernel) {
  for (const auto& [name, layer] : row_layers()) EXPECT_EQ(launches(rows(layer)), 1u) << name;
}

TEST(Launches, ItsGradientByTheInputIsOneKernel) {
  for (const auto& [name, layer] : row_layers()) EXPECT_EQ(launches(backward(layer, {"x"})), 1u) << name;
}

// The gradient of the input with the statistics of its rows, and the gradients of scale and shift, which are sums over rows.
TEST(Launches, AllGradientsOfALayerNormAreTwoKernels) {
  EXPECT_EQ(launches(backward([](auto& x, auto& g, auto& b) { return layer_norm(x, g, b); }, {"x", "scale", "shift"})), 2u);
}

TEST(Launches, ResultsOfOneShapeThatReadTheSameMemoryAreOneKernel) {
  Graph graph;
  const Value x = graph.input("x", {40, 50}, f32);
  graph.output("sums", sum(x, {0}));
  graph.output("largest", reduce_max(x, {0}));
  EXPECT_EQ(launches(graph), 1u);
}

TEST(Launches, AValueReadAtOtherPlacesIsStoredFirst) {
  Graph graph;
  const Value x = graph.input("x", {40, 50}, f32), e = exp(x);
  graph.output("e", e);
  graph.output("y", reverse(e, {1}) + x);
  EXPECT_EQ(launches(graph), 2u);
}

TEST(Launches, RowsOfATableAreComputedWhereTheyAreRead) {
  Graph graph;
  graph.output("y", embedding(exp(graph.param("table", {1000, 64}, f32)), graph.input("ids", {5}, i32)));
  EXPECT_EQ(launches(graph), 1u);
}

// What parameters alone give is a launch of its own, which runs once.
TEST(Launches, WhatParametersGiveIsStored) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 64), 64}, f32), w = exp(graph.param("w", {64}, f32));
  graph.output("y", x * w);
  EXPECT_EQ(launches(graph), 2u);
}

// A cast to a larger type is not stored where its operand can be.
TEST(Launches, WhatIsReadInALargerTypeIsStoredInTheSmaller) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 64), 2000}, f32), wide = cast(cast(exp(softmax(x, 1)), bf16), f32);
  graph.output("sums", sum(wide, {1}));
  graph.output("y", reverse(wide, {0, 1}) * x);
  const Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), cpu::target_of());
  std::size_t narrow = 0;
  for (const Launch& launch : program.launches)
    for (ValueId v : launch.writes) narrow += program.graph.type(v).dtype == bf16;
  EXPECT_EQ(narrow, 1u);
}

// What is cheap and read by one product only is computed while the product packs it.
TEST(Launches, ACastAndAScaleRunInThePackingOfAProduct) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 64), 64}, bf16), w = graph.input("w", {64, 96}, f32);
  graph.output("y", matmul(cast(x, f32) * 0.5 + 1, w));
  const Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), cpu::target_of());
  ASSERT_EQ(program.launches.size(), 1u);
  EXPECT_TRUE(cpu::work_of<cpu::Product>(program.launches[0])->prologue);
}

/// A product of such sizes would pack what is then read once.
TEST(Launches, OneColumnAndFewRowsOfNoWeightsAreGenerated) {
  const auto is_claimed = [](Dim rows, std::int64_t columns, bool weights) {
    Graph graph;
    const Value x = graph.input("x", {rows, 512}, f32);
    graph.output("y", matmul(x, weights ? graph.param("w", {512, columns}, f32) : graph.input("w", {512, columns}, f32)));
    const Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), cpu::target_of());
    return program.launches.back().claim == "gemm";
  };
  const Dim any = Dim::symbol("B", 64);
  EXPECT_FALSE(is_claimed(any, 1, true));
  EXPECT_FALSE(is_claimed(2, 96, false));
  EXPECT_TRUE(is_claimed(2, 96, true));
  EXPECT_TRUE(is_claimed(3, 96, false));
  EXPECT_TRUE(is_claimed(any, 96, false)) << "the same bits for any number of rows";
  EXPECT_TRUE(is_claimed(any, 2, true));
}

/// What each row multiplies with is not computed for each row.
TEST(Launches, OperandsOfGeneratedDotsAreStoredWhereTheyAreReadAgain) {
  const auto launches_with = [](const Layer& right) {
    Graph graph;
    const Value x = graph.input("x", {4096, 512}, f32), v = graph.input("v", {512, 1}, f32);
    graph.output("y", matmul(exp(x), right(v, v, v)));
    return launches(graph);
  };
  EXPECT_EQ(launches_with([](auto& v, auto&, auto&) { return v * 2; }), 1u);
  EXPECT_EQ(launches_with([](auto& v, auto&, auto&) { return tanh(v); }), 2u);
}

/// They read rows in place, which a kernel in the packing would not leave there.
TEST(Launches, TheLeftOperandOfFewColumnsIsStored) {
  const auto launches_with = [](std::int64_t columns) {
    Graph graph;
    const Value x = graph.input("x", {Dim::symbol("B", 64), 512}, f32), w = graph.param("w", {512, columns}, f32);
    graph.output("y", matmul(relu(x), w));
    return launches(graph);
  };
  EXPECT_EQ(launches_with(8), 2u);
  EXPECT_EQ(launches_with(9), 1u);
}

/// Statistics that are not of this run's rows, as those of a batch norm; a norm's own need the whole row before its first element.
TEST(Launches, RowsAreNormalisedInThePackingOfAProduct) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 64), 64}, f32), w = graph.input("w", {64, 96}, f32);
  const auto of_feature = [&](std::string_view name) { return graph.param(std::string(name), {64}, f32); };
  const Value normed = (x - of_feature("mean")) * of_feature("inverse deviation") * of_feature("scale") + of_feature("shift");
  graph.output("y", matmul(normed, w));
  const Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), cpu::target_of());
  ASSERT_EQ(program.launches.size(), 1u);
  EXPECT_TRUE(cpu::work_of<cpu::Product>(program.launches[0])->prologue);
}

TEST(Launches, WhatTwoProductsReadIsStored) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 64), 64}, bf16), wide = cast(x, f32);
  graph.output("y", matmul(wide, graph.input("w", {64, 96}, f32)));
  graph.output("z", matmul(wide, graph.input("v", {64, 96}, f32)));
  EXPECT_EQ(launches(graph), 3u);
}

Program in_int8(const Graph& graph, const Calibration* calibration = nullptr) {
  const Graph precise = with_precision(graph, Precision::int8, calibration).graph;
  return lower(expand(precise, [](const Graph&, const Node&) { return false; }), cpu::target_of());
}

/// Without those that read parameters alone and run once.
std::vector<const Launch*> launches_of_each_run(const Program& program) {
  const std::vector<bool> once = prepared_launches(program);
  std::vector<const Launch*> all;
  for (std::size_t i = 0; i < once.size(); ++i)
    if (!once[i]) all.push_back(&program.launches[i]);
  return all;
}

/// A residual, its norm and a product with 96 columns. The norm is an output too, where it is read elsewhere.
Graph norm_before_product(bool read_elsewhere) {
  Graph graph;
  const Dim b = Dim::symbol("B", 64);
  const Value x = graph.input("x", {b, 384}, f32), y = graph.input("y", {b, 384}, f32);
  const Value normed = layer_norm(x + y, graph.param("scale", {384}, f32), graph.param("shift", {384}, f32));
  graph.output("z", matmul(normed, graph.param("w", {384, 96}, f32)));
  if (read_elsewhere) graph.output("normed", normed);
  return graph;
}

Calibration calibrated(const std::vector<std::string>& products, std::int64_t depth) {
  Array least(f32, {depth}), largest(f32, {depth});
  std::ranges::fill(least.mutable_values<float>(), -1.0F);
  std::ranges::fill(largest.mutable_values<float>(), 2.0F);
  Calibration calibration;
  for (const std::string& product : products) calibration.ranges.push_back({product, least, largest});
  return calibration;
}

// What the product reads, numbers of 8 bits and a scale and an offset for each row, is all that comes of it: no row of f32 is stored in
// between, but where somebody else reads it.
TEST(Launches, AResidualItsNormAndTheRoundingOfItsRowsAreOneKernel) {
  const Calibration calibration = calibrated({"dot: f32[B,384] x f32[384,96]"}, 384);
  for (const Calibration* ranges : {static_cast<const Calibration*>(nullptr), &calibration})
    for (bool read_elsewhere : {false, true}) {
      const Program program = in_int8(norm_before_product(read_elsewhere), ranges);
      const auto launches = launches_of_each_run(program);
      ASSERT_EQ(launches.size(), 2u) << (ranges ? "calibrated" : "dynamic");
      EXPECT_TRUE(launches[0]->kind == Launch::Kind::kernel);
      std::map<std::string, int> written;
      for (ValueId v : launches[0]->writes)
        ++written[program.graph.type(v).size() == Dim::symbol("B", 64) ? "row" : std::string(name(program.graph.type(v).dtype))];
      EXPECT_EQ(written["i8"], 1);
      EXPECT_EQ(written["row"], ranges ? 0 : 2);
      EXPECT_EQ(written["f32"], read_elsewhere ? 1 : 0);
    }
}

TEST(Launches, CalibratedRoundingIsAnEpilogueOfTheProductBefore) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 64), 384}, f32);
  const Value y = gelu(matmul(x, graph.param("w1", {384, 384}, f32)) + graph.param("b", {384}, f32));
  graph.output("z", matmul(y, graph.param("w2", {384, 96}, f32)));
  const Calibration calibration = calibrated({"dot: f32[B,384] x f32[384,384]", "dot: f32[B,384] x f32[384,96]"}, 384);
  const Program program = in_int8(graph, &calibration);
  const auto launches = launches_of_each_run(program);
  ASSERT_EQ(launches.size(), 3u) << "x rounded, and two products";
  EXPECT_TRUE(cpu::work_of<cpu::Product>(*launches[1])->epilogue);
  EXPECT_EQ(program.graph.type(launches[1]->writes.at(0)).dtype, i8);
}

TEST(Launches, FoldsOfWindowsThatDoNotOverlapHaveNoLoop) {
  Graph graph;
  graph.output("y", fold(fold(graph.input("x", {8, 2, 16, 2}, f32), 2, 33, 2), 0, 16, 2));
  const Program program = lower(graph, cpu::target_of());
  ASSERT_EQ(program.launches.size(), 1u);
  for (const GeneratedKernel& generated : program.launches[0].kernels)
    for (const Expr& e : generated.kernel.exprs) EXPECT_NE(e.kind, Expr::Kind::reduce);
}

// Compiling takes time in proportion to the graph, not to its square: no kernel grows without bound.
TEST(Launches, LongChainsAreCutIntoKernelsOfBoundedLength) {
  Graph graph;
  Value x = graph.input("x", {8, 64}, f32);
  for (int i = 0; i < 20000; ++i) x = sin(x);
  graph.output("y", x);
  const Program program = lower(graph, cpu::target_of());
  EXPECT_GT(program.launches.size(), 100u);
  for (const Launch& launch : program.launches) EXPECT_LT(launch.kernels.at(0).kernel.exprs.size(), 10000u);
}

}  // namespace
}  // namespace rlx
