// Graphs on the device `coreml`, where mil_evaluator.py is in the place of CoreML: cut into packages where a node is the host's.
#include <cstring>

#include "backends/coreml/device/opened_package.h"
#include "coreml/python_models.h"
#include "message.h"
#include "rlx/export.h"
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

/// An op that CoreML has, by a kernel of the program.
TEST_F(CoreMlDevice, CallsKernelsBetweenPackages) {
  Graph graph;
  const Value x = graph.input("x", {3}, f32);
  graph.output("y", exp(softmax(x * 2, 0)));
  register_kernel("softmax", "coreml", [](std::span<const Array> operands, const std::map<std::string_view, Attr>&) {
    Array result(f32, operands[0].shape());
    for (std::int64_t i = 0; i < result.size(); ++i) result.set_double(i, operands[0].get_double(i) / 4);
    return std::vector<Array>{result};
  });
  Executable program = session().compile(graph);
  register_kernel("softmax", "coreml", nullptr);
  EXPECT_NEAR(program.run({{"x", std::vector<float>{0, 1, 2}}})[0].get_double(2), std::exp(1), 1e-5);
  EXPECT_EQ(models_.opened, 2);
}

TEST_F(CoreMlDevice, SaysWhatItsUnitsCompute) {
  Graph graph;
  graph.output("y", softmax(matmul(graph.input("x", {2, 2}, f32), graph.input("z", {2, 2}, f32))));
  Executable program = session().compile(graph);
  const std::size_t nodes = program.explain().size();
  const std::vector<float> numbers{1, 2, 3, 4};
  program.run({{"x", numbers}, {"z", numbers}});
  const std::vector<NodeReport> reports = program.explain();
  ASSERT_EQ(reports.size(), nodes + 2) << "once a package is made";
  EXPECT_EQ(reports[nodes].by + ": " + reports[nodes].text, "CPU: 1 softmax");
  EXPECT_EQ(reports[nodes + 1].by + ": " + reports[nodes + 1].text, "GPU: 2 matmul");
}

/// 40 rows of 64 numbers, in blocks of 18 bytes: 1 in f16, and codes.
Array rows_in_q4_0() {
  Array blocks(u8, {40, 36});
  for (std::int64_t i = 0; i < blocks.size(); ++i) blocks.set_int(i, i % 18 == 0 ? 0x00 : i % 18 == 1 ? 0x3C : i * 7 % 256);
  return blocks;
}

Executable product_of_blocks(const Session& session) {
  Graph graph;
  graph.output("y", block_dot(graph.input("x", {1, 64}, f32), graph.param("w", {40, 36}, u8), "Q4_0", false));
  Executable program = session.compile(graph);
  program.set_param("w", rows_in_q4_0());
  return program;
}

TEST_F(CoreMlDevice, TriesEachTypeOfBlocksOnce) {
  std::vector<float> x(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  const Array wanted = product_of_blocks(Session(Device::cpu())).run({{"x", x}}).at("y");
  for (const int opened : {2, 3}) {  // a product beside the first package
    const Array seen = product_of_blocks(session()).run({{"x", x}}).at("y");
    for (std::int64_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(seen.get_double(i), wanted.get_double(i), 1e-4);
    EXPECT_EQ(models_.opened, opened);
  }
}

/// A device that decodes scales to half of what they are.
struct WrongModel : PythonModel {
  using PythonModel::PythonModel;
  std::string run(std::span<const coreml::Given> inputs, std::span<const coreml::Wanted> outputs) override {
    std::string error = PythonModel::run(inputs, outputs);
    for (const coreml::Wanted& output : outputs)
      for (std::size_t i = 0; i + 3 < output.bytes.size(); i += 4) {
        float number = 0;
        std::memcpy(&number, &output.bytes[i], 4);
        number /= 2;
        std::memcpy(&output.bytes[i], &number, 4);
      }
    return error;
  }
};
struct WrongModels : PythonModels {
  Opened open(const std::filesystem::path& folder, const std::string& /*units*/) override {
    return {std::make_unique<WrongModel>(folder), {}};
  }
};

TEST_F(CoreMlDevice, RefusesATypeOfBlocksThatComesOutWrong) {
  WrongModels models;
  const std::unique_ptr<Backend> backend = coreml::backend_of(models, "ane");
  const Executable program = product_of_blocks(Session(Device(*backend)));
  for (int run = 0; run < 2; ++run) {
    const std::string error = error_of([&] { program.run({{"x", std::vector<float>(64, 1)}}); });
    EXPECT_TRUE(error.starts_with("coreml:ane: parameter 'w' in Q4_0: a product is off by ")) << error;
    EXPECT_NE(error.find("; another unit, as coreml:cpu, or another type may do"), std::string::npos) << error;
  }
}

/// The system compiles packages, and does not open or run them.
struct BrokenModels : PythonModels {
  explicit BrokenModels(bool is_opened) : opens(is_opened) {}
  Opened open(const std::filesystem::path& folder, const std::string& /*units*/) override {
    if (!opens) return {nullptr, "no memory"};
    struct Model : PythonModel {
      using PythonModel::PythonModel;
      std::string run(std::span<const coreml::Given> /*inputs*/, std::span<const coreml::Wanted> /*outputs*/) override { return "lost"; }
    };
    return {std::make_unique<Model>(folder), {}};
  }
  bool opens;
};

TEST_F(CoreMlDevice, WhatIsCompiledGoesWithTheExecutable) {
  Graph graph;
  graph.output("y", exp(graph.input("x", {2}, f32)));
  const std::vector<float> x{1, 2};
  {
    Executable program = session().compile(graph);
    program.run({{"x", x}});
    EXPECT_EQ(models_.compiled.entries(), 1);
  }
  EXPECT_EQ(models_.compiled.entries(), 0);
  for (const bool opens : {false, true}) {
    BrokenModels models(opens);
    const std::unique_ptr<Backend> backend = coreml::backend_of(models, "all");
    std::optional<Executable> program = Session(Device(*backend)).compile(graph);
    const std::string error = error_of([&] { program->run({{"x", x}}); });
    EXPECT_EQ(error, opens ? "coreml:all: graph 'graph': lost" : "coreml:all: no memory");
    EXPECT_EQ(models.compiled.entries(), opens ? 1 : 0) << "of a package that did not open, nothing is kept";
    EXPECT_GE(program->explain().size(), 1U);
    program.reset();
    EXPECT_EQ(models.compiled.entries(), 0);
    EXPECT_EQ(models.opened, 1);
  }
}

TEST_F(CoreMlDevice, OpensPackagesOfItsVersionOrBefore) {
  const TemporaryFolder folder;
  Graph graph;
  graph.output("y", exp(graph.input("x", {2}, f32)));
  for (const int target : {17, 26}) export_coreml(folder / fmt::format("{}.mlpackage", target), {graph, {}}, {.minimum_target = target});
  coreml::OpenedPackage(models_, folder / "17.mlpackage", "all");
  EXPECT_EQ(error_of([&] { coreml::OpenedPackage(models_, folder / "26.mlpackage", "all"); }),
            (folder / "26.mlpackage").string() + ": specification 10 of CoreML (allowed here: up to 9, of iOS 18 and macOS of its year)");
  const std::filesystem::path model = folder / "17.mlpackage" / "Data" / "com.apple.CoreML" / "model.mlmodel";
  write_text(model, "no model");
  EXPECT_EQ(error_of([&] { coreml::OpenedPackage(models_, folder / "17.mlpackage", "all"); }),
            model.string() + ": no model of CoreML begins so (allowed: the version of its specification)");
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
