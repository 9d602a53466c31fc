// Graphs on the device `coreml`, where mil_evaluator.py is in the place of CoreML: cut into packages where a node is the host's.
#include "coreml/python_models.h"
#include "message.h"
#include "rlx/host_call.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

class CoreMlDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  }
  Session session(SessionOptions options = {}) { return Session(Device(*backend_), options); }

  PythonModels models_;
  std::unique_ptr<Backend> backend_ = coreml::backend_of(models_, "all");
};

/// A function of the program between two packages.
TEST_F(CoreMlDevice, CutsGraphsWhereANodeIsTheHosts) {
  Graph graph;
  const Dim b = Dim::symbol("B", 8);
  Value x = graph.input("x", {b, 4}, f32), w = graph.param("w", {4, 4}, f32);
  const HostFunction twice = [](std::span<const Array> operands) {
    Array result(f32, operands[0].shape());
    for (std::int64_t i = 0; i < result.size(); ++i) result.set_double(i, 2 * operands[0].get_double(i));
    return std::vector<Array>{result};
  };
  const Value y = tanh(matmul(x, transpose(w, {1, 0})));
  const Value z = host_call(twice, {y}, {y.type()})[0];
  graph.output("z", softmax(z + y));
  graph.output("w", w * 2);
  Executable there = session().compile(graph), here = Session(Device::cpu()).compile(graph);
  std::vector<float> weights(16), values(12);
  for (std::size_t i = 0; i < 16; ++i) weights[i] = static_cast<float>(i) / 16;
  for (std::size_t i = 0; i < 12; ++i) values[i] = static_cast<float>(i) / 12;
  for (Executable* executable : {&there, &here}) executable->set_param("w", weights);
  for (const std::size_t rows : {3, 1}) {
    const auto feed = std::span(values).first(rows * 4);
    const Outputs seen = there.run({{"x", feed}}), wanted = here.run({{"x", feed}});
    for (const char* name : {"z", "w"})
      for (std::int64_t i = 0; i < wanted.at(name).size(); ++i)
        EXPECT_NEAR(seen.at(name).get_double(i), wanted.at(name).get_double(i), 1e-6) << name << rows;
  }
  EXPECT_EQ(models_.opened, 2) << "one package before the function, one behind it, for all sizes";
  std::map<std::string, int> computed;
  for (const NodeReport& node : there.explain()) ++computed[node.how == "host" ? node.by : node.how];
  EXPECT_EQ(computed.at("it calls a function of the host"), 1);
  EXPECT_GE(computed.at("native"), 4);
}

TEST_F(CoreMlDevice, RefusesTheHostWhereTheSessionDoes) {
  Graph graph;
  graph.output("y", bitcast(graph.input("x", {3}, f32), i32) + 1);
  EXPECT_EQ(error_of([&] { session({.host = false}).compile(graph); }),
            "graph 'graph': bitcast, i32[3], is not computed on coreml:all (CoreML has no view of a number's bits), and the session leaves "
            "nothing to the host");
}

/// Types that packages pass in others; a state; bits that a package has no view of; complex numbers at the border.
TEST_F(CoreMlDevice, PassesEveryTypeAndKeepsStates) {
  Graph graph;
  const Value x = graph.input("x", {2, 4}, f32), n = graph.input("n", {4}, u8), half = graph.input("half", {4}, bf16);
  const Value cache = graph.state("cache", {4}, f32);
  graph.output("narrow", n + n);
  graph.output("half", half * 3);
  graph.output("is", lt(x, 0.5));
  graph.output("bits", bitcast(x * 2, i32));
  graph.output("back", bitcast(bitcast(x * 2, i32), f32) + 1);
  graph.output("spectrum", fft(complex(x, x)));
  graph.output("cache", cache + sum(x, {0}));
  std::vector<float> values{0, 1, -2, 3, 0.25, -5, 6, 0.5};
  const std::vector<std::uint8_t> bytes{1, 127, 128, 255};
  const Array halves = Array::of(bf16, {4}, std::span<const float>(values).first(4));
  Executable there = session().compile(graph), here = Session(Device::cpu()).compile(graph);
  for (int run = 0; run < 2; ++run) {
    const Outputs seen = there.run({{"x", values}, {"n", bytes}, {"half", halves}});
    const Outputs wanted = here.run({{"x", values}, {"n", bytes}, {"half", halves}});
    for (const auto& [name, array] : wanted) {
      ASSERT_EQ(seen.at(name).dtype(), array.dtype()) << name;
      for (std::int64_t i = 0; i < array.size(); ++i)
        EXPECT_LE(std::abs(seen.at(name).get_complex(i) - array.get_complex(i)), 1e-5) << name;
    }
  }
}

}  // namespace
}  // namespace rlx::test
